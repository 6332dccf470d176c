use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::config::LockConfig;
use super::error::{LockError, LockErrorKind};
use super::held::{HeldLock, Release};
use super::holder::Holder;
use super::keeper::Keeper;
use super::renewal::{Renewal, Timing};
use super::state::State;
use crate::clock::Ticker;
use crate::time::Timestamp;

/// A lock that is held, until it is lost, released or dropped.
///
/// A task on the runtime renews it. Dropping the guard releases the lock in the
/// background, as well as that goes: the runtime has to live on for it.
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    holder: Holder,
    fence: Option<u64>,
    expires: bool,
    state: Arc<State>,
    released: Option<oneshot::Receiver<Result<Release, LockError>>>,
}

/// When a lock was asked for, by the clock that will judge it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    clock: Ticker,
    sent: Timestamp,
}

impl Asked {
    /// Notes the time, before the backend is asked for the lock.
    pub fn now(config: &LockConfig) -> Self {
        let clock = config.clock.start();
        let sent = clock.now();
        Self { clock, sent }
    }
}

impl LockGuard {
    /// Returns the guard of a lock that a backend has just taken for `holder`:
    /// asked for at `asked`, `granted` for so long (`None` when it does not
    /// expire), with a fencing number where the backend has one. Has to be called
    /// within a tokio runtime; it spawns the task that renews and releases.
    pub fn start(
        held: impl HeldLock,
        holder: Holder,
        fence: Option<u64>,
        asked: Asked,
        granted: Option<Duration>,
        config: &LockConfig,
    ) -> Self {
        let now = asked.clock.now();
        let renewal = Renewal::new(Timing::from(config), asked.sent, granted, now);
        let state = Arc::new(State::new(asked.clock, renewal.valid_until()));
        let (done, released) = oneshot::channel();
        let keeper = Keeper {
            held: Box::new(held),
            renewal,
            state: Arc::clone(&state),
            release_timeout: config.release_timeout,
            done,
        };
        tokio::spawn(keeper.run());
        Self {
            holder,
            fence,
            expires: granted.is_some(),
            state,
            released: Some(released),
        }
    }

    /// Returns what others are told about us.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Returns the id of this acquisition; see [`Holder::id`].
    pub fn id(&self) -> &str {
        &self.holder.id
    }

    /// Returns a number that grows with each acquisition, where the backend has
    /// one: what we write can carry it, so that whoever stores it can refuse what
    /// an earlier holder still writes.
    pub fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// Returns whether the lock ends by itself when it is not renewed.
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// Returns until when the lock can be trusted if no further renewal is
    /// acknowledged, on a clock that started when the lock was asked for:
    /// [`Timestamp::MAX`] when it does not expire, [`Timestamp::ZERO`] when it is
    /// lost.
    pub fn valid_until(&self) -> Timestamp {
        self.state.valid_until()
    }

    /// Returns for how long the lock can be trusted from now on if no further
    /// renewal is acknowledged: [`Duration::MAX`] when it does not expire, zero
    /// when it is lost.
    pub fn remaining(&self) -> Duration {
        match self.state.valid_until() {
            Timestamp::MAX => Duration::MAX,
            until => until.saturating_duration_since(self.state.clock.now()),
        }
    }

    /// Checks that the lock is held now, by what is known and by the own clock,
    /// with the margin to spare. Cheap; for use before each risky step.
    ///
    /// # Errors
    /// [`LockErrorKind::Lost`]. The error stays: every later call gets it too.
    pub fn ensure_held(&self) -> Result<(), LockError> {
        match self.state.loss() {
            None => Ok(()),
            Some(loss) => Err(loss.error()),
        }
    }

    /// Checks that the lock is held and can be trusted for so much longer, for a
    /// step of known length.
    ///
    /// # Errors
    /// [`LockErrorKind::Lost`] as [`LockGuard::ensure_held`], and
    /// [`LockErrorKind::Unreachable`] when the lock is held but no renewal that
    /// covers the time has been acknowledged yet.
    pub fn ensure_held_for(&self, time: Duration) -> Result<(), LockError> {
        self.ensure_held()?;
        let left = self.remaining();
        if left > time {
            return Ok(());
        }
        Err(LockError::new(
            LockErrorKind::Unreachable,
            format!("the lock is held for {left:?} more, under the {time:?} that are needed"),
        ))
    }

    /// Resolves when the lock is lost, and says why: by the own clock, without
    /// any answer from the backend, or because the backend says so. The loss is
    /// final.
    ///
    /// The future does not borrow the guard. It never resolves when the lock is
    /// released while it is held.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub fn lost(&self) -> impl Future<Output = LockError> + Send + use<> {
        let state = Arc::clone(&self.state);
        async move { state.lost().await.error() }
    }

    /// Releases the lock, and tells what became of it: a lock that was lost is
    /// left to whoever has it now.
    ///
    /// # Errors
    /// A [`LockError`] when it is not known whether the lock was removed.
    ///
    /// # Cancel safety
    /// Once called, dropping the future changes nothing but that the result is
    /// not seen.
    pub fn release(mut self) -> impl Future<Output = Result<Release, LockError>> + Send + use<> {
        let released = self.released.take();
        drop(self);
        async move {
            let result = match released {
                Some(released) => released.await.ok(),
                None => None,
            };
            result.unwrap_or_else(|| {
                Err(LockError::new(
                    LockErrorKind::Other,
                    "the task that releases the lock is gone: it may be left behind",
                ))
            })
        }
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.state.ask_to_stop();
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("holder", &self.holder)
            .field("fence", &self.fence)
            .field("valid_until", &self.state.valid_until())
            .finish_non_exhaustive()
    }
}
