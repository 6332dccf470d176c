use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// What the owner, or the lock's watcher, asks of the loop. Flags instead of a
/// queue: asking never waits and takes no memory, however often it is done.
#[derive(Debug, Default)]
pub(super) struct Signals {
    finish: AtomicBool,
    cancel: AtomicBool,
    lock_lost: AtomicBool,
    wake: Notify,
}

impl Signals {
    pub(super) fn finish(&self) {
        self.raise(&self.finish);
    }

    pub(super) fn cancel(&self) {
        self.raise(&self.cancel);
    }

    pub(super) fn lock_lost(&self) {
        self.raise(&self.lock_lost);
    }

    fn raise(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(super) fn is_finish_asked(&self) -> bool {
        self.finish.load(Ordering::Acquire)
    }

    pub(super) fn is_cancel_asked(&self) -> bool {
        self.cancel.load(Ordering::Acquire)
    }

    pub(super) fn is_lock_lost(&self) -> bool {
        self.lock_lost.load(Ordering::Acquire)
    }

    /// Waits until a flag was raised. For the loop only: there is one waiter.
    pub(super) async fn raised(&self) {
        self.wake.notified().await;
    }
}

/// Ends a run from elsewhere; made by
/// [`Preparer::canceller`](super::Preparer::canceller) and
/// [`HoldGuard::canceller`](super::HoldGuard::canceller).
#[derive(Clone, Debug)]
pub struct Canceller(pub(super) Arc<Signals>);

impl Canceller {
    /// Asks for the end of the run, whatever its phase, and returns at once.
    ///
    /// The stores are released first; then
    /// [`Preparer::prepare`](super::Preparer::prepare) returns
    /// [`ErrorKind::Cancelled`](crate::error::ErrorKind::Cancelled), or, when
    /// the hold had begun, [`HoldGuard::lost`](super::HoldGuard::lost) resolves
    /// with it. Asking twice, or after the end, does nothing.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns whether somebody asked for the end.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancel_asked()
    }
}
