use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::lock::{Holder, HolderKind, LockConfig};

/// The most that is shown of a value that is not ours, in characters.
const FOREIGN_MAX: usize = 120;

/// What we write as the value of our key. etcd's own mutex writes nothing there
/// and reads nothing, so it hurts nobody, and the fields have the names that
/// TiDB's lock files use.
#[derive(Serialize, Deserialize)]
struct Metadata {
    locked_at: String,
    locker_host: String,
    locker_pid: u64,
    #[serde(default)]
    purpose: String,
    #[serde(default)]
    hint: String,
}

/// Returns the value of the key of a lock that is taken at `now`.
pub(super) fn encode(config: &LockConfig, now: SystemTime) -> Vec<u8> {
    let locked_at = jiff::Timestamp::try_from(now).unwrap_or_default();
    let metadata = Metadata {
        locked_at: locked_at.to_string(),
        locker_host: config.host.clone(),
        locker_pid: u64::from(config.pid),
        purpose: config.purpose.clone(),
        hint: config.hint.clone(),
    };
    // Plain fields can always be written; without them the lock is as good.
    serde_json::to_vec(&metadata).unwrap_or_default()
}

/// Returns the holder with this key, as far as its value tells.
pub(super) fn decode(key: &[u8], lease: i64, revision: i64, value: &[u8]) -> Holder {
    let location = String::from_utf8_lossy(key);
    let mut holder = Holder::new(HolderKind::Lock, id(lease, revision), location);
    match serde_json::from_slice::<Metadata>(value) {
        Ok(metadata) => {
            let since = metadata.locked_at.parse::<jiff::Timestamp>();
            holder.since = since.ok().map(SystemTime::from);
            holder.host = Some(metadata.locker_host);
            holder.pid = Some(metadata.locker_pid);
            holder.purpose = Some(metadata.purpose);
            holder.hint = Some(metadata.hint);
        }
        // Of another program: an election's candidate writes its name there.
        Err(_) if !value.is_empty() => add_note(&mut holder, foreign(value)),
        Err(_) => {}
    }
    holder
}

/// Returns what names one holding of the lock: the same lease can lock twice.
pub(super) fn id(lease: i64, revision: i64) -> String {
    format!("{lease:x}-{revision}")
}

/// Adds what else is worth knowing.
pub(super) fn add_note(holder: &mut Holder, note: String) {
    holder.note = Some(match holder.note.take() {
        Some(earlier) => format!("{earlier}, {note}"),
        None => note,
    });
}

fn foreign(value: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(value)
        .chars()
        .take(FOREIGN_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("value {text:?}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let config = LockConfig {
            host: "db-7".to_owned(),
            pid: 42,
            purpose: "a \"backup\"".to_owned(),
            hint: "ask Ann".to_owned(),
            ..LockConfig::default()
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let value = encode(&config, now);
        assert_eq!(
            String::from_utf8_lossy(&value),
            r#"{"locked_at":"1970-01-12T13:46:40Z","locker_host":"db-7","locker_pid":42,"purpose":"a \"backup\"","hint":"ask Ann"}"#
        );
        let holder = decode(b"name/ff", 0xff, 12, &value);
        assert_eq!(holder.id, "ff-12");
        assert_eq!(holder.location, "name/ff");
        assert_eq!(holder.host.as_deref(), Some("db-7"));
        assert_eq!(holder.pid, Some(42));
        assert_eq!(holder.since, Some(now));
        assert_eq!(holder.purpose.as_deref(), Some("a \"backup\""));
        assert_eq!(holder.hint.as_deref(), Some("ask Ann"));
        assert_eq!(holder.note, None);
    }

    #[test]
    fn values_of_others_are_no_reason_to_fail() {
        let empty = decode(b"name/1", 1, 2, b"");
        assert_eq!((empty.host, empty.note), (None, None));
        let candidate = decode(b"name/1", 1, 2, b"tidb-0:4000");
        assert_eq!(candidate.note.as_deref(), Some("value \"tidb-0:4000\""));
        for value in [
            &b"{}"[..],
            b"{\"locked_at\":1}",
            b"\xff\xfe",
            b"a\nb",
            b"[]",
        ] {
            let holder = decode(b"\xffname", 1, 2, value);
            assert_eq!(holder.id, "1-2");
            assert_eq!(holder.host, None);
            assert!(!holder.note.unwrap_or_default().contains('\n'));
        }
        let long = decode(b"name/1", 1, 2, "x".repeat(100_000).as_bytes());
        assert!(long.note.is_some_and(|note| note.len() < 200));
        let odd_time = br#"{"locked_at":"then","locker_host":"h","locker_pid":1}"#;
        let odd_time = decode(b"name/1", 1, 2, odd_time);
        assert_eq!((odd_time.since, odd_time.pid), (None, Some(1)));
    }

    #[test]
    fn unknown_fields_are_tolerated() {
        let value = br#"{"txn_id":"x","locked_at":"2026-08-01T00:00:00+08:00","locker_host":"h","locker_pid":1,"more":[]}"#;
        let holder = decode(b"name/1", 1, 2, value);
        assert_eq!(holder.host.as_deref(), Some("h"));
        assert!(holder.since.is_some());
    }
}
