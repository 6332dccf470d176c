use tokio::sync::{oneshot, watch};

use super::error::{LockError, LockErrorKind};
use super::guard::LockGuard;

/// Tells an acquisition whether anybody still waits for it.
#[derive(Clone, Debug)]
pub(super) struct Caller(watch::Receiver<()>);

impl Caller {
    /// Resolves when nobody waits any more.
    pub(super) async fn gone(&mut self) {
        // Nothing is ever sent, so the end is the only change.
        while self.0.changed().await.is_ok() {}
    }

    /// Returns whether nobody waits any more.
    pub(super) fn is_gone(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

/// Runs an acquisition in a task of its own, so that dropping the returned
/// future cannot cut it off in the middle of a call: the work is told by its
/// [`Caller`], ends when it can, and a guard that nobody takes is dropped, which
/// releases the lock.
pub(super) async fn detached<W, F>(work: W) -> Result<LockGuard, LockError>
where
    W: FnOnce(Caller) -> F + Send,
    F: Future<Output = Result<LockGuard, LockError>> + Send + 'static,
{
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return Err(LockError::new(
            LockErrorKind::Config,
            "a lock has to be acquired within a tokio runtime",
        ));
    };
    // Dropped with this future.
    let (_here, caller) = watch::channel(());
    let (taken, guard) = oneshot::channel();
    let work = work(Caller(caller));
    runtime.spawn(async move {
        if taken.send(work.await).is_err() {
            tracing::debug!("an acquisition was given up");
        }
    });
    guard.await.unwrap_or_else(|_| {
        Err(LockError::new(
            LockErrorKind::Other,
            "the task that acquires the lock is gone",
        ))
    })
}
