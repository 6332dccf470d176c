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
use crate::lock::{LockError, LockErrorKind, LockGuard, Release, RunLock};

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
                Err(Box::new(not_taken(&lock.location(), error, reporter)))
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
            Some(loss) => under_lost_lock(result, format!("{location}: {loss}")),
            None => result,
        }
    }
}

/// Returns the result of a run whose lock was not to be had. Of what is wrong with
/// the lock itself it says that it is about the lock.
fn not_taken(location: &str, error: LockError, reporter: &Reporter) -> RunResult {
    let is_held = matches!(error.kind(), LockErrorKind::Held | LockErrorKind::Broken);
    let mut result = not_prepared(reporter, &Error::from(error), None);
    if !is_held {
        let reason = result.message.take().unwrap_or_default();
        result.message = Some(format!("the lock {location} cannot be taken: {reason}"));
    }
    // A place that is not fit for a lock is for its owner to see to.
    if result.outcome == Outcome::Error {
        result.outcome = Outcome::NotPrepared;
        result.kind = Some("lock_unusable");
    }
    result
}

fn under_lost_lock(mut result: RunResult, message: String) -> RunResult {
    let had_held = result.prepare_ms.is_some();
    let lost = LockErrorKind::Lost.error_kind().as_str();
    if result.kind == Some(lost) {
        // The hold only knows that it was lost, the lock also why.
        return result.because(lost, message);
    }
    let is_worse = matches!(
        result.outcome,
        Outcome::Ok | Outcome::Cancelled | Outcome::CommandFailed
    );
    if had_held && is_worse {
        result.outcome = Outcome::HoldLost;
        return result.because(lost, message);
    }
    result.remarks.push(message);
    result
}
