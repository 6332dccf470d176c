//! The clock by which leases, locks and deadlines are judged: the only place that
//! looks at the system's monotonic clock.

use std::time::Duration;

use crate::time::Timestamp;

/// The clock by which a run judges leases, locks and deadlines.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Clock {
    /// The system's clock. On Linux it is `CLOCK_BOOTTIME`, which goes on while
    /// the machine is suspended, as the stores' clocks do; elsewhere
    /// [`std::time::Instant`].
    #[default]
    System,
    /// The clock of the tokio runtime, for tests on paused time.
    Tokio,
    /// A function that returns the time since some start, the same one each
    /// time. It must not go backward, nor slower than the stores' clocks.
    Custom(fn() -> Duration),
}

impl Clock {
    /// Starts the clock at [`Timestamp::ZERO`].
    pub(crate) fn start(self) -> Ticker {
        Ticker(match self {
            Self::System => Source::System(system::now()),
            Self::Tokio => Source::Tokio(tokio::time::Instant::now()),
            Self::Custom(read) => Source::Custom(read(), read),
        })
    }
}

/// A running clock. Copies tell the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    System(system::Instant),
    Tokio(tokio::time::Instant),
    Custom(Duration, fn() -> Duration),
}

impl Ticker {
    /// Returns the time since the clock was started.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        match &self.0 {
            Source::System(start) => system::since(*start),
            Source::Tokio(start) => tokio::time::Instant::now().saturating_duration_since(*start),
            Source::Custom(start, read) => read().saturating_sub(*start),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    /// The time since boot, suspended time included.
    pub(super) type Instant = Duration;

    pub(super) fn now() -> Instant {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        )
    }

    pub(super) fn since(start: Instant) -> Duration {
        now().saturating_sub(start)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    pub(super) type Instant = std::time::Instant;

    pub(super) fn now() -> Instant {
        Instant::now()
    }

    pub(super) fn since(start: Instant) -> Duration {
        now().saturating_duration_since(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_moves_on() {
        let clock = Clock::System.start();
        let before = clock.now();
        while clock.now() == before {
            std::thread::yield_now();
        }
        assert!(clock.now() > before);
    }

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_follows_paused_time() {
        let clock = Clock::Tokio.start();
        assert_eq!(clock.now(), Timestamp::ZERO);
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(clock.now(), Timestamp::from_micros(7_000_000));
    }
}
