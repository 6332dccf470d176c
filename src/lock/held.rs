use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::error::LockError;
use super::holder::Holder;

/// A future in a box, so that traits can be used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lock that is held, as a backend sees it: the raw calls, each made once.
///
/// Everything else (when to renew, how long a call may take, when the lock
/// counts as lost, what happens when the guard is dropped) is done by
/// [`LockGuard::start`](super::LockGuard::start), in the same way for all.
pub trait HeldLock: Send + 'static {
    /// Tells the backend that the lock is still wanted, checks that it is still
    /// held, and returns for how long it is granted from the time of asking;
    /// `None` when it does not expire. What the backend granted counts, not what
    /// was asked for.
    ///
    /// # Errors
    /// [`RenewError::Lost`] when the backend says that the lock is not held any
    /// more, [`RenewError::Failed`] when it is not known.
    ///
    /// # Cancel safety
    /// Has to be safe to drop at any await: that is how a call ends that takes
    /// too long. It may then have acted or not.
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>>;

    /// Removes the lock if it is still this one, and whatever belongs to it.
    /// Never called while a renewal is under way, and called once.
    ///
    /// # Errors
    /// A [`LockError`] when it is not known whether the lock was removed.
    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>>;
}

/// Why a lock is not held any more.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// Its time ran out, by the own clock, before a renewal was acknowledged.
    Lapsed,
    /// It is gone: somebody removed it, or the backend let it expire.
    Removed,
    /// Somebody else has it.
    TakenOver(Box<Holder>),
    /// What kept it alive ended without being asked to: a runtime that was shut
    /// down, or a fault of the backend's code.
    Abandoned,
}

impl Loss {
    /// Returns the error that tells it.
    pub fn error(&self) -> LockError {
        use super::error::LockErrorKind::Lost;
        match self {
            Self::Lapsed => LockError::new(
                Lost,
                "the lock was lost: no renewal was acknowledged in time",
            ),
            Self::Removed => LockError::new(Lost, "the lock was lost: it was removed or expired"),
            Self::TakenOver(holder) => LockError::taken_over(holder.as_ref().clone()),
            Self::Abandoned => {
                LockError::new(Lost, "the lock was lost: the task that renews it is gone")
            }
        }
    }
}

/// Why a renewal brought nothing.
#[derive(Clone, Debug)]
pub enum RenewError {
    /// The lock is not held any more.
    Lost(Loss),
    /// It is not known; the next attempt may tell.
    Failed(LockError),
}

/// What became of a lock that was released.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Release {
    /// It was still ours, had never been lost, and is removed.
    Released,
    /// It was still ours and is removed, but it had been lost before: there was
    /// a time in which it could not be trusted.
    Lapsed,
    /// It was gone already.
    AlreadyGone,
    /// Somebody else has it, whom it was left to.
    TakenOver(Box<Holder>),
}

impl Release {
    /// Returns whether the lock had been held until it was released.
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Released)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("released"),
            Self::Lapsed => f.write_str("released, but it had been lost before"),
            Self::AlreadyGone => f.write_str("already gone"),
            Self::TakenOver(holder) => write!(f, "taken over by id {}", holder.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::HolderKind;

    #[test]
    fn what_became_of_a_lock_is_said_in_words() {
        let other = Box::new(Holder::new(HolderKind::Lock, "42", "x"));
        for (release, words, is_clean) in [
            (Release::Released, "released", true),
            (
                Release::Lapsed,
                "released, but it had been lost before",
                false,
            ),
            (Release::AlreadyGone, "already gone", false),
            (
                Release::TakenOver(other.clone()),
                "taken over by id 42",
                false,
            ),
        ] {
            assert_eq!(release.to_string(), words);
            assert_eq!(release.is_clean(), is_clean, "{words}");
        }
        for (loss, words) in [
            (
                Loss::Lapsed,
                "the lock was lost: no renewal was acknowledged in time",
            ),
            (
                Loss::Removed,
                "the lock was lost: it was removed or expired",
            ),
            (
                Loss::TakenOver(other),
                "the lock was lost: id 42 holds it now",
            ),
            (
                Loss::Abandoned,
                "the lock was lost: the task that renews it is gone",
            ),
        ] {
            assert_eq!(loss.error().message(), words);
        }
    }
}
