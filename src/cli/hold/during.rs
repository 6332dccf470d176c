use std::future::Future;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::session::HoldPlan;
use crate::cli::output::{Event, Reporter, Stamped};
use crate::cli::process::{CommandEnd, Signals, environment_of, name_of, supervise};
use crate::driver::HoldGuard;
use crate::error::{Error, Failure};

/// How long PD may take for its timestamp.
const TSO_LIMIT: Duration = Duration::from_secs(2);

/// Why a hold is over.
#[derive(Debug)]
pub(super) enum End {
    /// Its time is up, or, without a command, a signal asked for the end.
    Asked,
    /// The command has ended.
    Exited(ExitStatus),
    /// The command could not be run; says why.
    NotRun(String),
    /// A signal came before it was told that the hold began.
    Early(Signal),
    /// A signal came before the command was done.
    Interrupted(Signal),
    /// The hold was lost.
    Lost(Error),
    /// The ready file could not be written; says why.
    NoReadyFile(String),
}

/// Everything that happens while the hold is in force.
pub(super) struct During<'a> {
    pub(super) guard: &'a HoldGuard,
    pub(super) cluster_id: u64,
    pub(super) plan: &'a mut HoldPlan,
    pub(super) reporter: &'a Reporter,
    pub(super) signals: &'a mut Signals,
}

impl During<'_> {
    /// Tells that the hold began and does what it is for, until it is over.
    /// The ready file is gone when this returns.
    pub(super) async fn hold(&mut self, min_ts: impl Future<Output = Result<u64, Failure>>) -> End {
        let mut lost = pin!(self.guard.lost());
        let end = match self.announce(min_ts, lost.as_mut()).await {
            Err(end) => end,
            Ok((held, tso)) if !self.plan.command.is_empty() => {
                self.run_command(&held, tso, lost.as_mut()).await
            }
            Ok(_) => self.wait(lost.as_mut()).await,
        };
        self.plan.ready.remove();
        end
    }

    /// Takes PD's timestamp and tells that the hold began.
    async fn announce(
        &mut self,
        min_ts: impl Future<Output = Result<u64, Failure>>,
        lost: Pin<&mut impl Future<Output = Error>>,
    ) -> Result<(Stamped, Option<u64>), End> {
        let tso = tokio::select! {
            biased;
            error = lost => return Err(End::Lost(error)),
            signal = self.signals.next() => return Err(End::Early(signal)),
            tso = timeout(TSO_LIMIT, min_ts) => match tso {
                Ok(Ok(tso)) => Some(tso),
                Ok(Err(failure)) => {
                    tracing::info!("PD gives no timestamp: {failure}");
                    None
                }
                Err(_) => {
                    tracing::info!("PD gives no timestamp within {TSO_LIMIT:?}");
                    None
                }
            },
        };
        self.guard.ensure_valid().map_err(End::Lost)?;
        let report = self.guard.report();
        let held = self.reporter.stamp(Event::Held {
            cluster_id: self.cluster_id,
            stores: report.stores.len(),
            regions: report.regions,
            tso,
            proof: report.proof,
            attempt: report.attempt,
        });
        let line = held.json_line().unwrap_or_default();
        if let Err(error) = self.plan.ready.write(&line) {
            let message = format!("the ready file cannot be written: {error}");
            return Err(End::NoReadyFile(message));
        }
        self.reporter.emit_stamped(held.clone());
        Ok((held, tso))
    }

    /// Holds without a command.
    async fn wait(&mut self, lost: Pin<&mut impl Future<Output = Error>>) -> End {
        let time = self.plan.hold_for;
        let time_up = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        if time.is_none() {
            self.reporter
                .note("holding; Ctrl-C or SIGTERM ends the hold and releases");
        }
        tokio::select! {
            biased;
            error = lost => self.lost(error),
            signal = self.signals.next() => {
                self.reporter.note(format!("{}: the hold ends", name_of(signal)));
                End::Asked
            }
            () = time_up => End::Asked,
        }
    }

    /// Holds while the command runs.
    async fn run_command(
        &mut self,
        held: &Stamped,
        tso: Option<u64>,
        lost: Pin<&mut impl Future<Output = Error>>,
    ) -> End {
        let stores = &self.guard.report().stores;
        let environment = environment_of(self.cluster_id, stores, tso, &held.at);
        let ready = &mut self.plan.ready;
        let end = supervise(
            &self.plan.command,
            environment,
            "the hold",
            self.reporter,
            self.signals,
            lost,
            |error: &Error| {
                ready.remove();
                self.reporter.hold_lost(error);
            },
        )
        .await;
        match end {
            CommandEnd::Exited(status) => End::Exited(status),
            CommandEnd::NotRun(message) => End::NotRun(message),
            CommandEnd::Interrupted(signal) => End::Interrupted(signal),
            CommandEnd::Lost(error) => End::Lost(error),
        }
    }

    fn lost(&mut self, error: Error) -> End {
        self.plan.ready.remove();
        self.reporter.hold_lost(&error);
        End::Lost(error)
    }
}
