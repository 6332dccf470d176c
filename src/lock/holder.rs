use std::fmt;
use std::time::{Duration, SystemTime};

use crate::error::without_controls;

/// What stands in the way of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HolderKind {
    /// A lock that excludes everybody.
    Lock,
    /// A lock that readers share.
    ReadLock,
    /// A lock that excludes readers and other writers.
    WriteLock,
    /// The announcement of somebody who is about to take the lock.
    Intent,
    /// A lock whose content cannot be understood.
    Broken,
    /// Something else that lies where only locks should.
    Unknown,
}

impl HolderKind {
    /// Returns the kind in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::ReadLock => "read lock",
            Self::WriteLock => "write lock",
            Self::Intent => "intent",
            Self::Broken => "broken lock",
            Self::Unknown => "unknown object",
        }
    }
}

/// Who holds a lock, as far as that is known. Host and process are shown to
/// people only: whether that process still lives says nothing across machines
/// and containers, so nothing is ever decided by them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// What [`RunLock::break_lock`](super::RunLock::break_lock) needs to remove
    /// exactly this: the transaction id where the lock has one, else a name for
    /// what was seen.
    pub id: String,
    /// What it is.
    pub kind: HolderKind,
    /// Where it lies: an object's path, a key.
    pub location: String,
    /// The host of the holder.
    pub host: Option<String>,
    /// The process of the holder.
    pub pid: Option<u64>,
    /// When the lock was taken, by the holder's clock.
    pub since: Option<SystemTime>,
    /// When it ends unless it is renewed, by the holder's clock.
    pub expires_at: Option<SystemTime>,
    /// What it is for.
    pub purpose: Option<String>,
    /// What the holder wants others to know.
    pub hint: Option<String>,
    /// What else is worth knowing, such as why it cannot be understood.
    pub note: Option<String>,
}

impl Holder {
    /// Returns a holder of which nothing but this is known.
    pub fn new(kind: HolderKind, id: impl Into<String>, location: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind,
            location: location.into(),
            host: None,
            pid: None,
            since: None,
            expires_at: None,
            purpose: None,
            hint: None,
            note: None,
        }
    }

    /// Returns how long ago the lock was taken, `None` where that is not known
    /// or lies ahead: clocks differ.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        now.duration_since(self.since?).ok()
    }

    /// Returns all that is known in one line, with times in UTC and the age. What
    /// others wrote cannot break the line, nor move a terminal's cursor: control
    /// characters are shown as escapes.
    pub fn describe(&self, now: SystemTime) -> String {
        let mut parts = vec![format!("{} {}", self.kind.as_str(), self.location)];
        if let Some(host) = &self.host {
            parts.push(format!("host {host}"));
        }
        if let Some(pid) = self.pid {
            parts.push(format!("pid {pid}"));
        }
        if let Some(since) = self.since {
            let age = self.age(now).map_or(String::new(), |age| {
                format!(" ({} ago)", Seconds(age.as_secs()))
            });
            parts.push(format!("since {}{age}", rfc3339(since)));
        }
        if let Some(expires_at) = self.expires_at {
            parts.push(format!("expires at {}", rfc3339(expires_at)));
        }
        if let Some(purpose) = self.purpose.as_ref().filter(|text| !text.is_empty()) {
            parts.push(format!("for {purpose}"));
        }
        if let Some(hint) = self.hint.as_ref().filter(|text| !text.is_empty()) {
            parts.push(format!("hint: {hint}"));
        }
        if let Some(note) = self.note.as_ref().filter(|text| !text.is_empty()) {
            parts.push(note.clone());
        }
        parts.push(format!("id {}", self.id));
        without_controls(&parts.join(", "))
    }
}

/// Returns the time in UTC, to the second.
fn rfc3339(time: SystemTime) -> String {
    match jiff::Timestamp::try_from(time) {
        Ok(time) => format!("{time:.0}"),
        Err(_) => "a time out of range".to_owned(),
    }
}

/// A number of seconds, for people.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        match (hours, minutes) {
            (0, 0) => write!(f, "{seconds}s"),
            (0, _) => write!(f, "{minutes}m{seconds:02}s"),
            _ => write!(f, "{hours}h{minutes:02}m{seconds:02}s"),
        }
    }
}

/// Those who stand in the way: the first few, and how many there are. One's own
/// lock is never among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Holders {
    /// The first ones, [`Holders::LISTED_MAX`] at most.
    pub listed: Vec<Holder>,
    /// How many there are, those that are not listed included.
    pub total: usize,
}

impl Holders {
    /// The most that are listed.
    pub const LISTED_MAX: usize = 3;

    /// Returns whether nobody holds the lock.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Adds one, listing it while there is room.
    pub fn push(&mut self, holder: Holder) {
        self.total += 1;
        if self.listed.len() < Self::LISTED_MAX {
            self.listed.push(holder);
        }
    }

    /// Returns all in one line, with times in UTC and ages.
    pub fn describe(&self, now: SystemTime) -> String {
        let listed: Vec<_> = self
            .listed
            .iter()
            .map(|holder| holder.describe(now))
            .collect();
        let more = self.total.saturating_sub(self.listed.len());
        let listed = listed.join("; ");
        if more == 0 {
            listed
        } else {
            format!("{listed}; and {more} more")
        }
    }
}

impl FromIterator<Holder> for Holders {
    fn from_iter<I: IntoIterator<Item = Holder>>(holders: I) -> Self {
        let mut all = Self::default();
        for holder in holders {
            all.push(holder);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_description_tells_all_that_is_known() {
        let mut holder = Holder::new(HolderKind::Lock, "42", "a/truncating.lock");
        assert_eq!(holder.describe(at(0)), "lock a/truncating.lock, id 42");
        holder.host = Some("db-7".to_owned());
        holder.pid = Some(12);
        holder.since = Some(at(1_000_000));
        holder.expires_at = Some(at(1_000_090));
        holder.purpose = Some("a backup".to_owned());
        holder.hint = Some("wait".to_owned());
        holder.note = Some("odd".to_owned());
        assert_eq!(
            holder.describe(at(1_003_725)),
            "lock a/truncating.lock, host db-7, pid 12, since 1970-01-12T13:46:40Z \
             (1h02m05s ago), expires at 1970-01-12T13:48:10Z, for a backup, hint: wait, \
             odd, id 42"
        );
    }

    #[test]
    fn what_others_wrote_stays_on_the_line() {
        let mut holder = Holder::new(HolderKind::Lock, "4\r2", "a/ä\u{9b}2J");
        holder.host = Some("a\u{1b}[31m\nb".to_owned());
        holder.purpose = Some("x\ty".to_owned());
        holder.hint = Some("\u{7}ring\u{7f}".to_owned());
        holder.note = Some("\0".to_owned());
        assert_eq!(
            holder.describe(at(0)),
            "lock a/ä\\u{9b}2J, host a\\u{1b}[31m\\nb, for x\\ty, hint: \\u{7}ring\\u{7f}, \
             \\u{0}, id 4\\r2"
        );
    }

    #[test]
    fn a_lock_of_the_future_has_no_age() {
        let mut holder = Holder::new(HolderKind::Lock, "42", "x");
        holder.since = Some(at(100));
        assert_eq!(holder.age(at(99)), None);
        assert_eq!(holder.age(at(101)), Some(Duration::from_secs(1)));
        assert_eq!(
            holder.describe(at(99)),
            "lock x, since 1970-01-01T00:01:40Z, id 42"
        );
    }

    #[test]
    fn three_are_listed_and_the_rest_counted() {
        let holder = |id: usize| Holder::new(HolderKind::Intent, id.to_string(), "x");
        let holders: Holders = (0..5).map(holder).collect();
        assert_eq!(holders.listed.len(), 3);
        assert_eq!(holders.total, 5);
        assert!(holders.describe(at(0)).ends_with("id 2; and 2 more"));
        let all: Holders = (0..3).map(holder).collect();
        assert!(all.describe(at(0)).ends_with("id 2"));
        assert!(Holders::default().is_empty());
    }

    #[test]
    fn spans_read_well() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (61, "1m01s"), (3600, "1h00m00s")] {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }
}
