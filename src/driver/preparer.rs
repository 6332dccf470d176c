use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::board::Board;
use super::builder::{Builder, LockLost};
use super::error::PrepareError;
use super::guard::HoldGuard;
use super::host::Host;
use super::run::{Setup, run};
use super::signal::{Canceller, Signals};
use super::status::{Ended, Handle, Status, ValidUntil};
use crate::clock::Clock;
use crate::cluster::ClusterClient;
use crate::error::{Error, ErrorKind};
use crate::machine::{Config, Notice};
use crate::progress::{PrepareReport, Progress};

/// Brings a cluster into the state in which volume snapshots fit together.
///
/// ```no_run
/// # use snapshot_prepare::cluster::ClusterClient;
/// # async fn example(cluster: impl ClusterClient) -> Result<(), Box<dyn std::error::Error>> {
/// use snapshot_prepare::driver::Preparer;
///
/// let guard = Preparer::builder(cluster).build()?.prepare().await?;
/// tokio::select! {
///     lost = guard.lost() => return Err(lost.into()),
///     () = take_snapshots() => {}
/// }
/// // Only this says that the snapshots fit together.
/// guard.finish().await?;
/// # Ok(())
/// # }
/// # async fn take_snapshots() {}
/// ```
#[derive(Debug)]
#[must_use = "nothing happens until prepare is called"]
pub struct Preparer<C> {
    cluster: Arc<C>,
    config: Config,
    host: Host,
    clock: Clock,
    lock_lost: Option<LockLost>,
    signals: Arc<Signals>,
    progress: watch::Sender<Progress>,
    notices: Vec<mpsc::UnboundedSender<Notice>>,
}

impl<C: ClusterClient> Preparer<C> {
    /// Starts to set up a preparer for a cluster.
    pub fn builder(cluster: C) -> Builder<C> {
        Builder::new(cluster)
    }

    pub(super) fn new(
        cluster: Arc<C>,
        config: Config,
        is_isolated: bool,
        clock: Clock,
        lock_lost: Option<LockLost>,
    ) -> Self {
        Self {
            cluster,
            config,
            host: if is_isolated {
                Host::Isolated
            } else {
                Host::Shared
            },
            clock,
            lock_lost,
            signals: Arc::default(),
            progress: watch::Sender::new(Progress::default()),
            notices: Vec::new(),
        }
    }

    /// Returns the latest progress, kept up to date until the run is over; then
    /// the sender is gone. Values in between may be left out.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Returns every notice from now on, until the run is over. Nothing is left
    /// out, so read or drop it: what is not read is kept.
    pub fn notices(&mut self) -> mpsc::UnboundedReceiver<Notice> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.notices.push(sender);
        receiver
    }

    /// Returns a handle that ends the run from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.signals))
    }

    /// Dials, suspends, waits, proves, and returns when the hold has begun.
    ///
    /// # Errors
    /// Whatever kept the hold from beginning within
    /// [`Config::prepare_timeout`]; see [`ErrorKind`]. All stores that could be
    /// reached were released before this returns; [`PrepareError::report`]
    /// names the others. [`ErrorKind::Internal`] when the driver itself failed;
    /// then stores may stay suspended until their lease ends.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the run. The stores are released in the
    /// background, which takes the runtime the driver runs on to go on for as
    /// long; to wait for it use [`Preparer::canceller`] instead.
    pub async fn prepare(self) -> Result<HoldGuard, PrepareError> {
        let pending = self
            .start()
            .map_err(|error| PrepareError::new(error, None))?;
        pending.settled().await
    }

    fn start(self) -> Result<Pending, Error> {
        let status = watch::Sender::new(Status::default());
        let valid_until = Arc::new(ValidUntil::default());
        let clock = self.clock.start();
        let handle = Handle {
            status: status.subscribe(),
            signals: Arc::clone(&self.signals),
            valid_until: Arc::clone(&valid_until),
            clock,
            lease: self.config.lease,
        };
        let board = Arc::new(Board::default());
        let reporter = {
            let board = Arc::clone(&board);
            async move { board.report(self.progress).await }
        };
        let failed = {
            let (status, board) = (status.clone(), Arc::clone(&board));
            move |ended| {
                status.send_modify(|status| status.ended = Some(Arc::new(ended)));
                board.close();
            }
        };
        let work = run(Setup {
            cluster: self.cluster,
            config: self.config,
            clock,
            signals: self.signals,
            status,
            valid_until,
            notices: self.notices,
            board,
            lock_lost: self.lock_lost,
        });
        self.host.start(work, reporter, failed)?;
        Ok(Pending {
            handle,
            has_settled: false,
        })
    }
}

/// A run that has no owner but the future of `prepare`; cancelled when dropped.
struct Pending {
    handle: Handle,
    has_settled: bool,
}

/// What `prepare` waits for.
enum Settled {
    Held(Arc<PrepareReport>),
    Ended(Arc<Ended>),
}

impl Pending {
    async fn settled(mut self) -> Result<HoldGuard, PrepareError> {
        let signals = Arc::clone(&self.handle.signals);
        let settled = self
            .handle
            .wait(|status| {
                if let Some(ended) = &status.ended {
                    return Some(Settled::Ended(Arc::clone(ended)));
                }
                // A hold that is being given up is not handed out.
                let is_good = status.lost.is_none() && !signals.is_cancel_asked();
                let held = status.held.as_ref().filter(|_| is_good)?;
                Some(Settled::Held(Arc::clone(held)))
            })
            .await
            .unwrap_or_else(|error| Settled::Ended(Arc::new(Ended::Died(error))));
        self.has_settled = true;
        match settled {
            Settled::Held(report) => Ok(HoldGuard::new(self.handle.clone(), report)),
            Settled::Ended(ended) => Err(no_hold(&ended)),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.has_settled {
            self.handle.signals.cancel();
        }
    }
}

fn no_hold(ended: &Ended) -> PrepareError {
    let error = ended.error().unwrap_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "the run was over before its hold was handed out",
        )
    });
    PrepareError::new(error, ended.report().cloned())
}
