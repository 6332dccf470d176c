//! The library's own monotonic time value.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::time::Duration;

/// An instant on a monotonic clock, in microseconds since an arbitrary start.
///
/// The pure layers never look at a clock: time comes in as an argument. Only
/// the driver (or a simulation) decides where the start lies and how time
/// moves on. Two timestamps are comparable only when they come from the same
/// clock.
///
/// ```
/// use std::time::Duration;
/// use snapshot_prepare::time::Timestamp;
///
/// let sent = Timestamp::from_micros(1_000);
/// let later = sent + Duration::from_millis(2);
/// assert_eq!(later.saturating_duration_since(sent), Duration::from_millis(2));
/// assert_eq!(sent.saturating_duration_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);
    /// The end of time; a deadline that is never reached.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the instant that lies `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, zero when `earlier` is later.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + duration`, at most [`Timestamp::MAX`].
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// Returns `self - duration`, at least [`Timestamp::ZERO`].
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(micros))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    fn add(self, duration: Duration) -> Self {
        self.saturating_add(duration)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(
            Timestamp::ZERO.saturating_sub(Duration::from_secs(1)),
            Timestamp::ZERO
        );
    }

    #[test]
    fn micros_are_kept() {
        let at = Timestamp::from_micros(12);
        assert_eq!(at.as_micros(), 12);
        let later = at + Duration::from_millis(3);
        assert_eq!(later.as_micros(), 3_012);
        assert_eq!(
            later.saturating_duration_since(at),
            Duration::from_millis(3)
        );
        assert_eq!(at.saturating_duration_since(later), Duration::ZERO);
        assert_eq!(later.saturating_sub(Duration::from_millis(3)), at);
    }

    #[test]
    fn displays_seconds() {
        let at = Timestamp::from_micros(12_000_034);
        assert_eq!(format!("{at} {at:?}"), "12.000034s 12.000034s");
    }
}
