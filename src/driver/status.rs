use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::signal::Signals;
use crate::clock::Ticker;
use crate::error::{Error, ErrorKind};
use crate::machine::Outcome;
use crate::progress::{FinishReport, PrepareReport, ReleaseState};
use crate::time::Timestamp;

/// What the loop tells the owner, as the latest value. Only grows: what is set
/// stays set.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    /// The hold began.
    pub(super) held: Option<Arc<PrepareReport>>,
    /// The hold was lost.
    pub(super) lost: Option<Error>,
    /// All is over.
    pub(super) ended: Option<Arc<Ended>>,
}

/// How it was over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// As the machine says.
    Closed {
        outcome: Outcome,
        report: Option<FinishReport>,
    },
    /// The driver failed.
    Died(Error),
}

impl Ended {
    /// Returns the error with which the owner's call ends, `None` for a hold
    /// that ended well.
    pub(super) fn error(&self) -> Option<Error> {
        match self {
            Self::Closed { outcome, .. } => match outcome {
                Outcome::Finished => None,
                Outcome::Cancelled => Some(cancelled()),
                Outcome::HoldLost(error) | Outcome::Failed(error) => Some(error.clone()),
            },
            Self::Died(error) => Some(error.clone()),
        }
    }

    /// Returns what became of the leases, as far as it is known.
    pub(super) fn report(&self) -> Option<&FinishReport> {
        match self {
            Self::Closed { report, .. } => report.as_ref(),
            Self::Died(_) => None,
        }
    }
}

/// Returns the error of a run that its owner ended.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled by the caller")
}

/// Returns the error of a run whose driver failed.
pub(super) fn died(why: &str, lease: Duration) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("{why}; stores may stay suspended for up to {lease:?}"),
    )
}

/// Until when the hold can be trusted; zero stands for not at all.
#[derive(Debug, Default)]
pub(super) struct ValidUntil(AtomicU64);

impl ValidUntil {
    pub(super) fn set(&self, until: Option<Timestamp>) {
        let micros = until.map_or(0, Timestamp::as_micros);
        self.0.store(micros, Ordering::Release);
    }

    pub(super) fn get(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Acquire))
    }
}

/// The owner's end of a running loop.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    /// Closed without `ended` when the loop died. Nobody outside of this module
    /// borrows from it, so the loop's writes to it never wait.
    pub(super) status: watch::Receiver<Status>,
    pub(super) signals: Arc<Signals>,
    pub(super) valid_until: Arc<ValidUntil>,
    pub(super) clock: Ticker,
    pub(super) lease: Duration,
}

impl Handle {
    /// Waits for a change of the status that `pick` wants; if the loop dies
    /// before, returns the error that says so.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn wait<T>(
        &mut self,
        mut pick: impl FnMut(&Status) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            if let Some(found) = pick(&self.status.borrow_and_update()) {
                return Ok(found);
            }
            if self.status.changed().await.is_err() {
                // The last value may have been set just before the end.
                return pick(&self.status.borrow()).ok_or_else(|| self.stopped());
            }
        }
    }

    /// Waits for the end.
    pub(super) async fn ended(&mut self) -> Arc<Ended> {
        self.wait(|status| status.ended.clone())
            .await
            .unwrap_or_else(|error| Arc::new(Ended::Died(error)))
    }

    /// Returns what was lost up to now.
    pub(super) fn lost_now(&self) -> Option<Error> {
        // In this order: the loop sets a status before it goes.
        let is_gone = self.status.has_changed().is_err();
        let status = self.status.borrow();
        match (&status.lost, &status.ended) {
            (Some(error), _) => Some(error.clone()),
            (None, Some(ended)) => ended.error(),
            (None, None) => is_gone.then(|| self.stopped()),
        }
    }

    /// Returns a report for when there is none since the driver died: nothing
    /// is known of any store, and a renewal can have been sent just now.
    pub(super) fn report_unknown(&self, held: &PrepareReport, error: Error) -> FinishReport {
        let closed_at = self.clock.now();
        let until = closed_at + self.lease;
        FinishReport {
            stores: held
                .stores
                .iter()
                .map(|(id, _)| (*id, ReleaseState::Unknown { until }))
                .collect(),
            prepare_time: Some(held.prepare_time),
            suspended_time: None,
            closed_at,
            error: Some(error),
        }
    }

    fn stopped(&self) -> Error {
        died(
            "the driver was stopped, most likely with the runtime it ran on",
            self.lease,
        )
    }
}
