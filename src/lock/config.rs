use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, ErrorKind};

/// How a lock behaves, and what it tells others about its holder. Every field
/// has a sane default; [`LockConfig::validate`] says what cannot work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockConfig {
    /// How long the lock outlives its last renewal; `None`, the default, leaves
    /// it to the kind of lock: a lock on etcd then takes 30 s, and one on
    /// storage or in memory does not expire by itself.
    pub ttl: Option<Duration>,
    /// How long before its end the lock is no longer trusted: more than nothing,
    /// and less than half of `ttl`. 2 s by default.
    pub margin: Duration,
    /// How often a lock that does not expire is looked at, so that its removal
    /// or replacement is noticed. 10 s by default.
    pub check_interval: Duration,
    /// The longest that one call to the backend may take. 10 s by default.
    pub call_timeout: Duration,
    /// The longest that a release, or the clean-up after an acquisition that was
    /// given up, may take. 10 s by default.
    pub release_timeout: Duration,
    /// The shortest backoff after a failed call. 200 ms by default.
    pub backoff_min: Duration,
    /// The longest backoff after a failed call. 10 s by default.
    pub backoff_max: Duration,
    /// What the lock is for, as others read it.
    pub purpose: String,
    /// What others should know or do when they meet the lock.
    pub hint: String,
    /// The name of this host, as others read it. A placeholder is fine.
    pub host: String,
    /// The id of this process, as others read it.
    pub pid: u32,
    /// Seeds the jitter of waits, so that a test can be replayed; `None`, the
    /// default, takes a seed that differs from process to process.
    pub seed: Option<u64>,
    /// The clock by which the holder judges whether it still holds the lock.
    pub clock: Clock,
}

impl Default for LockConfig {
    fn default() -> Self {
        Self {
            ttl: None,
            margin: Duration::from_secs(2),
            check_interval: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            release_timeout: Duration::from_secs(10),
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_secs(10),
            purpose: "snapshot-prepare".to_owned(),
            hint: String::new(),
            host: host_name(),
            pid: std::process::id(),
            seed: None,
            clock: Clock::default(),
        }
    }
}

impl LockConfig {
    /// Checks that the settings can work.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: the lease is under 1 s or over 1 h, the margin is
    /// nothing or half of the lease or more, an interval or a deadline is
    /// nothing, or the backoff's bounds are the wrong way round.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Config, message));
        if let Some(ttl) = self.ttl {
            if ttl < Duration::from_secs(1) || ttl > Duration::from_secs(3600) {
                return wrong(format!("a lock's lease of {ttl:?} is not in 1 s to 1 h"));
            }
            if self.margin >= ttl / 2 {
                return wrong(format!(
                    "a margin of {:?} has to be under half of the lock's lease of {ttl:?}",
                    self.margin
                ));
            }
        }
        for (name, value) in [
            ("margin", self.margin),
            ("check interval", self.check_interval),
            ("call timeout", self.call_timeout),
            ("release timeout", self.release_timeout),
            ("shortest backoff", self.backoff_min),
        ] {
            if value < Duration::from_millis(1) {
                return wrong(format!("the lock's {name} has to be 1 ms at least"));
            }
        }
        if self.backoff_min > self.backoff_max {
            return wrong("the lock's longest backoff is under its shortest".to_owned());
        }
        Ok(())
    }
}

/// Returns the name of this host, or a placeholder: not to know it is no reason
/// to fail.
fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    if name.is_empty() {
        "unknown-host".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut LockConfig)) -> Result<(), ErrorKind> {
        let mut config = LockConfig::default();
        change(&mut config);
        config.validate().map_err(|error| error.kind())
    }

    #[test]
    fn the_bounds_are_kept() {
        let secs = Duration::from_secs;
        assert_eq!(config(|_| {}), Ok(()));
        assert_eq!(config(|c| c.ttl = Some(secs(5))), Ok(()));
        assert_eq!(config(|c| c.ttl = Some(secs(3600))), Ok(()));
        assert_eq!(config(|c| c.backoff_max = c.backoff_min), Ok(()));
        let least = |c: &mut LockConfig| {
            c.ttl = Some(secs(1));
            for time in [
                &mut c.margin,
                &mut c.check_interval,
                &mut c.call_timeout,
                &mut c.release_timeout,
                &mut c.backoff_min,
            ] {
                *time = Duration::from_millis(1);
            }
        };
        assert_eq!(config(least), Ok(()));
        let changes: [fn(&mut LockConfig); 9] = [
            |c| c.ttl = Some(Duration::from_millis(999)),
            |c| c.ttl = Some(Duration::from_secs(3601)),
            |c| c.ttl = Some(Duration::from_secs(4)),
            |c| c.margin = Duration::ZERO,
            |c| c.check_interval = Duration::ZERO,
            |c| c.call_timeout = Duration::ZERO,
            |c| c.release_timeout = Duration::ZERO,
            |c| c.backoff_min = Duration::ZERO,
            |c| c.backoff_max = Duration::from_millis(199),
        ];
        for change in changes {
            assert_eq!(config(change), Err(ErrorKind::Config));
        }
    }

    #[test]
    fn the_host_has_a_name() {
        let host = LockConfig::default().host;
        assert!(!host.is_empty());
        if let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            assert_eq!(host, name.trim());
        }
    }
}
