use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::range::KeyRange;

/// How a machine behaves. Every field has a sane default; [`Config::validate`]
/// says what cannot work.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The keys to cover; all of them by default.
    pub target: KeyRange,
    /// How long each lease is asked for: whole seconds, 5 s to 1 h. 120 s by
    /// default.
    pub lease: Duration,
    /// How long before a lease's end it is no longer trusted: at least 1 s
    /// (stores count in whole seconds), and at most half of the lease. 2 s by
    /// default.
    pub margin: Duration,
    /// The time from the start within which the hold has to begin. 5 min by
    /// default.
    pub prepare_timeout: Duration,
    /// The longest hold. 1 h by default.
    pub hold_timeout: Duration,
    /// How long a wait may be unanswered before the region is looked at anew.
    /// 30 s by default.
    pub ask_timeout: Duration,
    /// How long a leader read may be unanswered before it counts as refused.
    /// 5 s by default.
    pub read_timeout: Duration,
    /// How long a listing, a scan, a store list or a dial may go without
    /// progress, and how long the first lease and Finish may go unanswered.
    /// 10 s by default.
    pub call_timeout: Duration,
    /// How long an opened stream has to stay free of errors before it counts
    /// as open. 200 ms by default.
    pub settle: Duration,
    /// The shortest backoff; each one is a quarter longer than the one before.
    /// 100 ms by default. Where an answer says that the cluster is just changing
    /// (a region has split, merged or moved, or has no leader at the moment), the
    /// first look comes at once and the pauses begin at a 32nd of this.
    pub backoff_min: Duration,
    /// The longest backoff. 5 s by default.
    pub backoff_max: Duration,
    /// The most waits in flight per store, 1 to 100 000. 512 by default.
    pub window: u32,
    /// The most regions asked of PD at once, 1 to 100 000. 4096 by default.
    pub page_size: u32,
    /// What to do when a store was already leased by somebody else.
    pub foreign_lease: ForeignLease,
    /// What makes a confirmation a proof.
    pub proof: Proof,
    /// Seeds the jitter of the backoffs.
    pub seed: u64,
}

/// What to do when a store's first lease shows that somebody else's was still
/// in force.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ForeignLease {
    /// Report it and go on.
    #[default]
    Proceed,
    /// Give up. Those stores get no Finish, since it would lift the other's
    /// lease, and are named.
    Refuse,
}

/// What makes a confirmed wait a proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Proof {
    /// A linearizable read served afterwards by the same store as leader.
    #[default]
    Read,
    /// The claims before and after and PD's word. It rests on the assumption
    /// that no leader is cut off from its quorum while we still reach it.
    Claims,
}

impl Proof {
    /// Returns the name the program uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Claims => "claims",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: KeyRange::whole(),
            lease: Duration::from_secs(120),
            margin: Duration::from_secs(2),
            prepare_timeout: Duration::from_secs(300),
            hold_timeout: Duration::from_secs(3600),
            ask_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(10),
            settle: Duration::from_millis(200),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
            window: 512,
            page_size: 4096,
            foreign_lease: ForeignLease::default(),
            proof: Proof::default(),
            seed: 0,
        }
    }
}

/// The largest value of a field that counts things.
const COUNT_MAX: u32 = 100_000;
/// The longest of the times that have no other bound.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

impl Config {
    /// Checks that the fields can work together.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the first field that cannot work, its value
    /// and what is allowed.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_lease()?;
        self.validate_times()?;
        for (name, value) in [("window", self.window), ("page size", self.page_size)] {
            if value == 0 || value > COUNT_MAX {
                return Err(config_error(format!(
                    "{name} is {value}; it has to be between 1 and {COUNT_MAX}"
                )));
            }
        }
        Ok(())
    }

    fn validate_lease(&self) -> Result<(), Error> {
        let lease = self.lease;
        if lease.subsec_nanos() != 0 {
            return Err(config_error(format!(
                "lease is {lease:?}; stores count in whole seconds, so it has to be a whole number of them"
            )));
        }
        if lease < Duration::from_secs(5) || lease > Duration::from_secs(3600) {
            let seconds = lease.as_secs();
            return Err(config_error(format!(
                "lease is {seconds}s; it has to be between 5s and 1h"
            )));
        }
        if self.margin < Duration::from_secs(1) {
            return Err(config_error(format!(
                "margin is {:?}; it has to be at least 1s, since stores count in whole seconds",
                self.margin
            )));
        }
        // A renewal goes out at a quarter of the lease; with less left than
        // another quarter there is no time for its answer.
        if self.margin > lease / 2 {
            return Err(config_error(format!(
                "margin is {:?} with a lease of {lease:?}; it has to be at most half the lease",
                self.margin
            )));
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), Error> {
        for (name, value) in [
            ("prepare timeout", self.prepare_timeout),
            ("hold timeout", self.hold_timeout),
            ("ask timeout", self.ask_timeout),
            ("read timeout", self.read_timeout),
            ("call timeout", self.call_timeout),
            ("shortest backoff", self.backoff_min),
        ] {
            if value < Duration::from_millis(1) || value > TIME_MAX {
                return Err(config_error(format!(
                    "{name} is {value:?}; it has to be between 1ms and 7 days"
                )));
            }
        }
        if self.settle > TIME_MAX {
            return Err(config_error(format!(
                "settle time is {:?}; it has to be at most 7 days",
                self.settle
            )));
        }
        if self.backoff_max < self.backoff_min || self.backoff_max > TIME_MAX {
            return Err(config_error(format!(
                "longest backoff is {:?}; it has to be between the shortest ({:?}) and 7 days",
                self.backoff_max, self.backoff_min
            )));
        }
        Ok(())
    }

    /// Returns the time between a renewal and the next: a quarter of the lease.
    pub fn renew_every(&self) -> Duration {
        self.lease / 4
    }

    /// Returns how long after its request was sent a lease is trusted.
    pub fn trusted_for(&self) -> Duration {
        self.lease.saturating_sub(self.margin)
    }
}

fn config_error(message: String) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::default();
        change(&mut config);
        let error = config.validate().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    }

    #[test]
    fn r3_lease_is_whole_seconds_from_5s_to_1h() {
        assert!(Config::default().validate().is_ok());
        for bad in [0, 4_000, 1_500, 5_500, 3_601_000] {
            let message = refused(|config| config.lease = Duration::from_millis(bad));
            assert!(message.starts_with("lease is"), "{message}");
        }
        for good in [5, 3600] {
            let config = Config {
                lease: Duration::from_secs(good),
                ..Config::default()
            };
            assert!(config.validate().is_ok(), "{good}");
        }
    }

    #[test]
    fn r3_margin_is_never_under_a_second() {
        assert!(
            refused(|config| config.margin = Duration::from_millis(999)).contains("at least 1s")
        );
        assert!(refused(|config| config.margin = Duration::from_secs(61)).contains("half"));
    }

    #[test]
    fn limits_of_counts_are_exact() {
        type Set = fn(&mut Config, u32);
        let counts: [(&str, Set); 2] = [
            ("window", |config, value| config.window = value),
            ("page size", |config, value| config.page_size = value),
        ];
        for (name, set) in counts {
            for bad in [0, COUNT_MAX + 1] {
                assert!(refused(|config| set(config, bad)).starts_with(name));
            }
            for good in [1, COUNT_MAX] {
                let mut config = Config::default();
                set(&mut config, good);
                assert!(config.validate().is_ok(), "{name} {good}");
            }
        }
    }

    #[test]
    fn limits_of_times_are_exact() {
        type Set = fn(&mut Config, Duration);
        let (least, instant) = (Duration::from_millis(1), Duration::from_nanos(1));
        let times: [(&str, Duration, Set); 8] = [
            ("prepare timeout", least, |it, to| it.prepare_timeout = to),
            ("hold timeout", least, |it, to| it.hold_timeout = to),
            ("ask timeout", least, |it, to| it.ask_timeout = to),
            ("read timeout", least, |it, to| it.read_timeout = to),
            ("call timeout", least, |it, to| it.call_timeout = to),
            ("shortest backoff", least, |it, to| it.backoff_min = to),
            ("settle time", Duration::ZERO, |it, to| it.settle = to),
            // The shortest one is a millisecond here, too.
            ("longest backoff", least, |it, to| it.backoff_max = to),
        ];
        assert_eq!(TIME_MAX, Duration::from_secs(604_800), "a week");
        for (name, least, set) in times {
            let base = || Config {
                backoff_min: Duration::from_millis(1),
                backoff_max: TIME_MAX,
                ..Config::default()
            };
            for good in [least, TIME_MAX] {
                let mut config = base();
                set(&mut config, good);
                assert!(config.validate().is_ok(), "{name} {good:?}");
            }
            let below = least.checked_sub(instant);
            for bad in below.into_iter().chain([TIME_MAX + instant]) {
                let mut config = base();
                set(&mut config, bad);
                let error = config.validate().expect_err(name).to_string();
                assert!(error.starts_with(name), "{name} {bad:?}: {error}");
            }
        }
    }

    #[test]
    fn r3_margin_is_at_most_half_the_lease() {
        let with = |margin| Config {
            margin,
            ..Config::default()
        };
        let half = Config::default().lease / 2;
        assert!(with(half).validate().is_ok());
        assert!(with(half + Duration::from_nanos(1)).validate().is_err());
        assert!(with(Duration::from_secs(1)).validate().is_ok());
    }
}
