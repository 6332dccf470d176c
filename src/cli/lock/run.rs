use std::fmt;
use std::pin::Pin;

use super::open::open;
use super::take::{NotTaken, take};
use crate::cli::args::RunLockArgs;
use crate::cli::exit::Outcome;
use crate::cli::hold::not_prepared;
use crate::cli::output::{Reporter, RunResult};
use crate::cli::process::{Signals, name_of};
use crate::error::{Error, ErrorKind};
use crate::lock::{LockErrorKind, LockGuard, Release, RunLock};

/// The lock of a run.
#[derive(Debug)]
pub(crate) struct RunLocked {
    location: String,
    guard: LockGuard,
}

/// Resolves when the lock of a run is lost.
pub(crate) struct LockLost(Pin<Box<dyn Future<Output = ()> + Send>>);

impl LockLost {
    pub(crate) async fn lost(self) {
        self.0.await;
    }
}

impl fmt::Debug for LockLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockLost")
    }
}

/// Returns the lock that the options name, if they name one. Nothing is asked of
/// it yet.
///
/// # Errors
/// The settings cannot work.
pub(crate) fn lock_of(args: &RunLockArgs) -> Result<Option<Box<dyn RunLock>>, String> {
    let Some(url) = &args.lock else {
        return Ok(None);
    };
    let lock = open(url, args.config());
    lock.map(Some).map_err(|error| error.message().to_owned())
}

impl RunLocked {
    /// Takes the lock of a run.
    ///
    /// # Errors
    /// The result of the run, which is over when the lock is not to be had.
    pub(crate) async fn take(
        lock: Box<dyn RunLock>,
        args: &RunLockArgs,
        reporter: &Reporter,
        signals: &mut Signals,
    ) -> Result<Self, Box<RunResult>> {
        match take(&*lock, args.lock_wait, signals).await {
            Ok(guard) => {
                let location = lock.location();
                reporter.note(format!("lock {location} taken, id {}", guard.id()));
                Ok(Self { location, guard })
            }
            Err(NotTaken::Failed(error)) => {
                let error = Error::from(error);
                Err(Box::new(not_prepared(reporter, &error, None)))
            }
            Err(NotTaken::Interrupted(signal)) => {
                let message = format!("{} came before the lock was taken", name_of(signal));
                let result = RunResult::new(Outcome::Cancelled)
                    .because(ErrorKind::Cancelled.as_str(), message);
                Err(Box::new(result))
            }
        }
    }

    /// Returns what resolves when the lock is lost.
    pub(crate) fn lost(&self) -> LockLost {
        let lost = self.guard.lost();
        LockLost(Box::pin(async move { drop(lost.await) }))
    }

    /// Releases the lock after the verdict, and returns the result with what the
    /// lock has to say to it: under a lock that was lost no hold is good.
    pub(crate) async fn release(self, mut result: RunResult) -> RunResult {
        let Self { location, guard } = self;
        let loss = guard.ensure_held().err();
        let id = guard.id().to_owned();
        let released = guard.release().await;
        let loss = match (loss, &released) {
            (Some(error), _) => Some(error.message().to_owned()),
            (None, Ok(Release::Released)) => None,
            (None, Ok(not_clean)) => Some(format!("the lock was lost: {not_clean}")),
            (None, Err(error)) => {
                result.remarks.push(format!(
                    "the lock may be left behind: {error}; see `lock status {location}`, and \
                     `lock release` with id {id}"
                ));
                None
            }
        };
        match loss {
            Some(message) => under_lost_lock(result, message),
            None => result,
        }
    }
}

fn under_lost_lock(mut result: RunResult, message: String) -> RunResult {
    let had_held = result.prepare_ms.is_some();
    let is_worse = matches!(
        result.outcome,
        Outcome::Ok | Outcome::Cancelled | Outcome::CommandFailed
    );
    if had_held && is_worse {
        result.outcome = Outcome::HoldLost;
        return result.because(LockErrorKind::Lost.error_kind().as_str(), message);
    }
    result.remarks.push(message);
    result
}
