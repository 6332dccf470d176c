//! Golden files: what each version of the tools writes can be read, and what we
//! write is what they read.

use super::*;

fn at(micros: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

/// 2024-10-21T11:22:33Z
const THEN: u64 = 1_729_509_753;

fn read(text: &str) -> Metadata {
    Metadata::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const V1: &str = r#"{"locked_at":"2024-10-21T19:22:33.123456789+08:00","locker_host":"br-0","locker_pid":42,"hint":"wait or delete it"}"#;
const V2_GO: &str = r#"{"locked_at":"2024-10-21T19:22:33.5+08:00","locker_host":"br-0","locker_pid":42,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"h"}"#;
const V2_TIKV: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"an_unknown_tikv_node","locker_pid":1,"txn_id":"00112233-4455-4677-8899-aabbccddeeff","hint":"h"}"#;
const V3: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"UnknownHost(err=no)","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","owner_id":"op-1","lock_type":"log-truncate-exclusive","hint":"restore_id=7"}"#;
const V3_BARE: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":""}"#;
const LEASE: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"h","expire_at":"2024-10-21T20:22:33.25+08:00"}"#;
const LEASE_ZERO: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"h","expire_at":"0001-01-01T00:00:00Z"}"#;
const EXTRA: &str = r#"{"hint":"h","locked_at":"2024-10-21T11:22:33Z","new":{"a":[1,null]},"locker_host":"h","locker_pid":1,"n":2}"#;

#[test]
fn every_version_is_read() {
    let v1 = read(V1);
    assert_eq!(
        v1.locked_at,
        at(THEN * 1_000_000) + Duration::from_nanos(123_456_789)
    );
    assert_eq!((v1.locker_host.as_str(), v1.locker_pid), ("br-0", 42));
    assert_eq!((v1.txn_id, v1.hint.as_str()), (None, "wait or delete it"));
    assert_eq!(read(V2_GO).locked_at, at(THEN * 1_000_000 + 500_000));
    let txn = TxnId::parse("00112233445546778899aabbccddeeff");
    for text in [V2_GO, V2_TIKV, V3, V3_BARE, LEASE, LEASE_ZERO] {
        let metadata = read(text);
        assert_eq!(metadata.txn_id, txn, "{text}");
        assert_eq!(metadata.lease_ms, None, "{text}");
    }
    assert_eq!(
        read(LEASE).expire_at,
        Some(at((THEN + 3600) * 1_000_000 + 250_000))
    );
    assert_eq!(read(LEASE_ZERO).expire_at, None);
    let elsewhere = LEASE_ZERO.replace("0001-01-01T00:00:00Z", "0001-01-01T02:00:00+02:00");
    assert_eq!(read(&elsewhere).expire_at, None);
    let note = read(V3).note();
    assert_eq!(
        note.as_deref(),
        Some("owner_id op-1, lock_type log-truncate-exclusive")
    );
    assert_eq!(read(V3_BARE).note(), None);
}

#[test]
fn unknown_fields_are_kept() {
    for text in [EXTRA, V3] {
        let metadata = read(text);
        let mut again: Value = serde_json::from_slice(&metadata.to_json()).expect("our own");
        let mut first: Value = serde_json::from_str(text).expect("valid");
        for value in [&mut first, &mut again] {
            // The same id in another form.
            value.as_object_mut().expect("an object").remove("txn_id");
        }
        assert_eq!(first, again);
    }
}

#[test]
fn what_cannot_be_understood_is_broken() {
    for text in [
        "",
        " ",
        "null",
        "[]",
        "truncated by hand",
        "{}",
        r#"{"locked_at":"yesterday","locker_host":"h","locker_pid":1,"hint":""}"#,
        r#"{"locked_at":"2024-10-21T11:22:33","locker_host":"h","locker_pid":1,"hint":""}"#,
        r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"x","hint":""}"#,
        r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":1,"locker_pid":1,"hint":""}"#,
        r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":-1,"hint":""}"#,
    ] {
        assert!(Metadata::parse(text.as_bytes()).is_err(), "{text}");
    }
    // Cut off anywhere.
    for end in 0..V3.len() {
        assert!(Metadata::parse(&V3.as_bytes()[..end]).is_err(), "{end}");
    }
    assert!(Metadata::parse(&[0xff, 0xfe]).is_err());
}

fn ours() -> Metadata {
    let config = LockConfig {
        host: "db-7".to_owned(),
        pid: 42,
        purpose: "backup".to_owned(),
        hint: "ask me".to_owned(),
        ..LockConfig::default()
    };
    let txn = TxnId::parse("00112233445546778899aabbccddeeff").expect("a txn");
    Metadata::new(&config, txn, at(THEN * 1_000_000 + 500_000))
}

#[test]
fn we_write_what_the_others_write_in_their_order() {
    let text = String::from_utf8(ours().to_json()).expect("text");
    assert_eq!(
        text,
        r#"{"locked_at":"2024-10-21T11:22:33.5Z","locker_host":"db-7","locker_pid":42,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"backup: ask me"}"#
    );
    assert_eq!(read(&text), ours());
}

#[test]
fn our_own_fields_come_last_and_only_with_an_end() {
    let lease = Duration::from_secs(30);
    let metadata = ours().expiring(lease, at(THEN * 1_000_000));
    let text = String::from_utf8(metadata.to_json()).expect("text");
    let end = r#""hint":"backup: ask me","expire_at":"2024-10-21T11:23:03Z","lease_ms":30000}"#;
    assert!(text.ends_with(end), "{text}");
    assert_eq!(read(&text), metadata);
}
