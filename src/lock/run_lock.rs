use std::fmt;
use std::time::Duration;

use super::error::LockError;
use super::guard::LockGuard;
use super::held::BoxFuture;
use super::holder::{Holder, Holders};

/// A lock that lets one run at a time work.
///
/// Each acquisition is a holder of its own, also through the same value: no lock
/// is re-entrant. The methods are called within a tokio runtime.
///
/// No lock stops TiKV itself, or a holder that was paused and does not know yet
/// that it lost the lock: ask [`LockGuard::ensure_held`] before each risky step,
/// and heed [`LockGuard::lost`].
pub trait RunLock: fmt::Debug + Send + Sync + 'static {
    /// Returns where the lock lies, for messages. Never shows credentials.
    fn location(&self) -> String;

    /// Takes the lock: at once, or within `wait`, which may be
    /// [`Duration::ZERO`]. A call that is under way when the time is up may take
    /// its own deadline longer.
    ///
    /// # Errors
    /// [`LockErrorKind::Held`](super::LockErrorKind::Held), with the holders,
    /// when others had it all the time; another kind when the lock could not be
    /// taken for another reason. Nothing is left behind then, as far as the
    /// backend can be reached.
    ///
    /// # Cancel safety
    /// Dropping the future gives the acquisition up; what it has left behind is
    /// removed in the background, under a deadline of its own.
    fn acquire(&self, wait: Duration) -> BoxFuture<'_, Result<LockGuard, LockError>>;

    /// Tells who holds the lock. Only reads.
    ///
    /// # Errors
    /// A [`LockError`] when the backend gave no usable answer.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    fn status(&self) -> BoxFuture<'_, Result<Holders, LockError>>;

    /// Removes the lock of the holder with this id, as [`RunLock::status`] tells
    /// it, whether that holder lives or not, and returns what was removed. The
    /// holder notices at its next renewal at the latest.
    ///
    /// # Errors
    /// [`LockErrorKind::NotThatHolder`](super::LockErrorKind::NotThatHolder) when
    /// no holder has this id; nothing is removed then.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it open whether the lock was removed.
    fn break_lock<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Holder, LockError>>;
}
