#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::Duration;

use super::config::LockConfig;
use super::held::Loss;
use crate::time::Timestamp;

/// The least time a renewal is given, should the lock last that long.
const CALL_MIN: Duration = Duration::from_millis(100);

/// When a held lock is renewed, and when it counts as lost: pure, with time as
/// an argument.
///
/// Ask [`Renewal::step`] what to do, do it, and tell what came of it, until it
/// says that the lock is lost. A lock that does not expire is only looked at,
/// which is a renewal that grants nothing.
///
/// The lock is trusted until the send time of the last acknowledged renewal,
/// plus what was granted, less the margin. What is not acknowledged extends
/// nothing, and a lost lock is never renewed.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    config: Timing,
    /// [`Timestamp::MAX`] for a lock that does not expire.
    valid_until: Timestamp,
    /// When the next renewal is due.
    next: Timestamp,
    flight: Option<Flight>,
    /// Failures in a row.
    failures: u32,
    lost: Option<Loss>,
}

/// The times of a lock's configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) margin: Duration,
    pub(super) check_interval: Duration,
    pub(super) call_timeout: Duration,
    pub(super) backoff_min: Duration,
    pub(super) backoff_max: Duration,
}

impl From<&LockConfig> for Timing {
    fn from(config: &LockConfig) -> Self {
        Self {
            margin: config.margin,
            check_interval: config.check_interval,
            call_timeout: config.call_timeout,
            backoff_min: config.backoff_min,
            backoff_max: config.backoff_max,
        }
    }
}

/// A renewal that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Flight {
    sent: Timestamp,
    deadline: Timestamp,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Send a renewal now and give it up at the deadline.
    Renew { deadline: Timestamp },
    /// Nothing until then, or until the renewal in flight is answered.
    Wait { until: Timestamp },
    /// The lock is lost, for good: no more renewals.
    Lost(Loss),
}

impl Renewal {
    /// Starts with a lock that was asked for at `sent` and granted for so long,
    /// or without end, as is known at `now`.
    pub(super) fn new(
        config: Timing,
        sent: Timestamp,
        granted: Option<Duration>,
        now: Timestamp,
    ) -> Self {
        let mut renewal = Self {
            config,
            valid_until: Timestamp::ZERO,
            next: now,
            flight: None,
            failures: 0,
            lost: None,
        };
        renewal.extend(sent, granted, now);
        renewal
    }

    /// Returns until when the lock can be trusted.
    pub(super) fn valid_until(&self) -> Timestamp {
        match self.lost {
            None => self.valid_until,
            Some(_) => Timestamp::ZERO,
        }
    }

    /// Says what to do at `now`. A renewal counts as sent when it is told.
    pub(super) fn step(&mut self, now: Timestamp) -> Step {
        if let Some(loss) = self.loss(now) {
            return Step::Lost(loss);
        }
        if self.flight.is_some_and(|flight| now >= flight.deadline) {
            self.failed(now);
        }
        if let Some(flight) = self.flight {
            let until = flight.deadline.min(self.valid_until);
            return Step::Wait { until };
        }
        if now < self.next {
            let until = self.next.min(self.valid_until);
            return Step::Wait { until };
        }
        let deadline = now + self.budget(now);
        self.flight = Some(Flight {
            sent: now,
            deadline,
        });
        Step::Renew { deadline }
    }

    /// The renewal in flight was acknowledged.
    pub(super) fn acknowledged(&mut self, granted: Option<Duration>, now: Timestamp) {
        let flight = self.flight.take();
        if let (Some(flight), None) = (flight, self.loss(now)) {
            self.failures = 0;
            self.extend(flight.sent, granted, now);
        }
    }

    /// The renewal in flight failed, or was given up.
    pub(super) fn failed(&mut self, now: Timestamp) {
        self.flight = None;
        let doubled = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        let backoff = self.config.backoff_min.saturating_mul(doubled);
        // So that several attempts fit into what is left.
        let left = self.valid_until.saturating_duration_since(now);
        let longest = self.config.backoff_max.min(left / 4);
        self.next = now + backoff.min(longest).max(self.config.backoff_min);
    }

    /// The backend says that the lock is not held any more.
    pub(super) fn gone(&mut self, loss: Loss) {
        self.lose(loss);
    }

    /// Returns why the lock is lost, if it is at `now`.
    pub(super) fn loss(&mut self, now: Timestamp) -> Option<Loss> {
        if self.valid_until != Timestamp::MAX && now >= self.valid_until {
            self.lose(Loss::Lapsed);
        }
        self.lost.clone()
    }

    /// The first loss stays.
    fn lose(&mut self, loss: Loss) {
        self.flight = None;
        self.lost.get_or_insert(loss);
    }

    /// Counts what was granted from the time of asking, so that it ends here
    /// before it ends there.
    fn extend(&mut self, sent: Timestamp, granted: Option<Duration>, now: Timestamp) {
        let pause = match granted {
            None => {
                self.valid_until = Timestamp::MAX;
                self.config.check_interval
            }
            Some(granted) => {
                self.valid_until = sent + granted.saturating_sub(self.config.margin);
                granted / 3
            }
        };
        self.next = (sent + pause).max(now + self.config.backoff_min);
    }

    /// Returns how long a renewal that begins at `now` may take: half of what is
    /// left, so that there can be another.
    fn budget(&self, now: Timestamp) -> Duration {
        let left = self.valid_until.saturating_duration_since(now);
        self.config
            .call_timeout
            .min((left / 2).max(left.min(CALL_MIN)))
    }
}

#[cfg(test)]
mod tests;
