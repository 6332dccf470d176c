use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::error::FinishError;
use super::signal::Canceller;
use super::status::{Handle, cancelled};
use crate::error::{Error, ErrorKind};
use crate::progress::{FinishReport, PrepareReport};
use crate::time::Timestamp;

/// The hold: while it lasts, volume snapshots of all stores fit together.
///
/// The hold can be lost at any moment; [`HoldGuard::lost`] tells, and only
/// [`HoldGuard::finish`] says whether it lasted. Dropping the guard gives the
/// hold up and releases the stores in the background.
#[derive(Debug)]
#[must_use = "dropping the guard gives the hold up"]
pub struct HoldGuard {
    handle: Handle,
    report: Arc<PrepareReport>,
    is_finishing: bool,
}

impl HoldGuard {
    pub(super) fn new(handle: Handle, report: Arc<PrepareReport>) -> Self {
        Self {
            handle,
            report,
            is_finishing: false,
        }
    }

    /// Returns what was prepared.
    pub fn report(&self) -> &PrepareReport {
        &self.report
    }

    /// Returns until when the hold can be trusted if no further renewal is
    /// answered, on the clock of the report's timestamps.
    /// [`Timestamp::ZERO`] when it cannot be trusted any more.
    pub fn valid_until(&self) -> Timestamp {
        self.handle.valid_until.get()
    }

    /// Returns for how long the hold can be trusted from now on if no further
    /// renewal is answered; zero when it cannot any more.
    pub fn remaining(&self) -> Duration {
        match self.ensure_valid() {
            Ok(()) => self
                .valid_until()
                .saturating_duration_since(self.handle.clock.now()),
            Err(_) => Duration::ZERO,
        }
    }

    /// Checks that nothing speaks against the hold now, by what is known and by
    /// the own clock. Cheap; for use before each step that relies on the hold.
    ///
    /// # Errors
    /// Why the hold was lost. An error is for good.
    pub fn ensure_valid(&self) -> Result<(), Error> {
        if let Some(error) = self.handle.lost_now() {
            return Err(error);
        }
        if self.handle.signals.is_cancel_asked() {
            return Err(cancelled());
        }
        if self.handle.signals.is_lock_lost() {
            return Err(Error::new(
                ErrorKind::LockLost,
                "the lock that guards the run was lost",
            ));
        }
        if self.handle.clock.now() >= self.valid_until() {
            // The driver comes to the same conclusion as soon as it runs.
            return Err(Error::new(
                ErrorKind::LeaseLost,
                "no lease was renewed in time, by the own clock",
            ));
        }
        Ok(())
    }

    /// Waits until the hold is lost, and says why. The error stays: every call,
    /// also a later one, gets the same. [`ErrorKind::Cancelled`] when a
    /// [`Canceller`] ended the hold, [`ErrorKind::Internal`] when the driver
    /// itself failed.
    ///
    /// The future does not borrow the guard. It never resolves when the hold
    /// ends well.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub fn lost(&self) -> impl Future<Output = Error> + Send + use<> {
        let mut handle = self.handle.clone();
        async move {
            let lost = handle
                .wait(|status| match (&status.lost, &status.ended) {
                    (Some(error), _) => Some(Some(error.clone())),
                    (None, Some(ended)) => Some(ended.error()),
                    (None, None) => None,
                })
                .await;
            match lost {
                Ok(Some(error)) | Err(error) => error,
                Ok(None) => std::future::pending().await,
            }
        }
    }

    /// Returns a handle that gives the hold up from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.handle.signals))
    }

    /// Ends the hold and returns the verdict: `Ok` only when every store
    /// confirmed that its lease had been in force to the end, so that all
    /// snapshots taken since [`Preparer::prepare`](super::Preparer::prepare)
    /// returned fit together.
    ///
    /// # Errors
    /// Why the hold did not last, or is not known to have: discard the
    /// snapshots. [`FinishError::report`] tells which stores were released.
    ///
    /// # Cancel safety
    /// Once polled, dropping the future changes nothing but that the verdict is
    /// not seen, so the snapshots have to be discarded; the stores are released
    /// in the background.
    #[must_use = "only the verdict says whether the snapshots fit together"]
    pub async fn finish(mut self) -> Result<FinishReport, FinishError> {
        self.is_finishing = true;
        self.handle.signals.finish();
        let ended = self.handle.ended().await;
        match ended.error() {
            None => Ok(self.report_of(&ended, None)),
            Some(error) => {
                let report = self.report_of(&ended, Some(&error));
                Err(FinishError::new(error, report))
            }
        }
    }

    /// Gives the hold up, waits until the stores are released, and returns what
    /// became of them.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing; the stores are released in the
    /// background.
    pub async fn abort(mut self) -> FinishReport {
        self.handle.signals.cancel();
        let ended = self.handle.ended().await;
        let error = ended.error();
        self.report_of(&ended, error.as_ref())
    }

    fn report_of(&self, ended: &super::status::Ended, error: Option<&Error>) -> FinishReport {
        ended.report().cloned().unwrap_or_else(|| {
            let error = error.cloned().unwrap_or_else(|| {
                Error::new(ErrorKind::Internal, "the run ended without a report")
            });
            self.handle.report_unknown(&self.report, error)
        })
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        if !self.is_finishing {
            self.handle.signals.cancel();
        }
    }
}
