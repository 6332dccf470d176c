use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::family::LockMode;

/// How a lock on storage behaves beyond what holds for all locks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageOptions {
    /// How the lock is shared; exclusive by default.
    pub mode: LockMode,
    /// How long after its end a lock that expires is left alone before somebody
    /// else may take it over. 30 s by default.
    pub grace: Duration,
    /// How long to wait for others who are in the middle of taking the lock: for
    /// who sees only announcements, and for who has just put the lock in place.
    /// 2 s by default.
    pub settle: Duration,
    /// The clock by which times in lock objects are written and read.
    pub wall_clock: WallClock,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            mode: LockMode::default(),
            grace: Duration::from_secs(30),
            settle: Duration::from_secs(2),
            wall_clock: WallClock::default(),
        }
    }
}

/// A clock that tells the time of day.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// Returns a clock that asks `now`.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time of day.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for WallClock {
    /// Returns the system's clock.
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}
