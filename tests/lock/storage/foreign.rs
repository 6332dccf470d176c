//! Locks of other tools, and what else may lie in the lock's place: seen, named,
//! and left alone.

use std::time::{Duration, SystemTime};

use snapshot_prepare::lock::storage::{LockMode, StorageOptions, WallClock};
use snapshot_prepare::lock::{HolderKind, LockError, LockErrorKind, Release, RunLock};

use super::support::{PATH, config, lock, memory, names, read, with_mode, with_options, write};

const V1: &str = r#"{"locked_at":"2024-10-21T19:22:33.123456789+08:00","locker_host":"br-0","locker_pid":42,"hint":"wait or delete it"}"#;
const V2: &str = r#"{"locked_at":"2024-10-21T19:22:33+08:00","locker_host":"br-0","locker_pid":42,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"h"}"#;
const TIKV: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"an_unknown_tikv_node","locker_pid":1,"txn_id":"00112233-4455-4677-8899-aabbccddeeff","hint":"h"}"#;
const V3: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","owner_id":"op","lock_type":"log-truncate-exclusive","hint":"h"}"#;
const LEASE: &str = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"txn_id":"ABEiM0RVRneImaq7zN3u/w==","hint":"h","expire_at":"2024-10-21T12:22:33Z"}"#;
const FUTURE: &str =
    r#"{"locked_at":"2999-10-21T11:22:33Z","locker_host":"h","locker_pid":1,"hint":"h"}"#;
const TXN: &str = "00112233-4455-4677-8899-aabbccddeeff";

/// Acquires where this object lies, and checks that nothing is changed.
async fn refused(path: &str, content: &str) -> LockError {
    let store = memory();
    write(&store, path, content).await;
    for wait in [Duration::ZERO, Duration::from_secs(20)] {
        let lock = lock(&store, config());
        let error = lock.acquire(wait).await.expect_err("it is held");
        assert_eq!(read(&store, path).await.as_deref(), Some(content));
        assert_eq!(names(&store).await, [path]);
        if !wait.is_zero() {
            return error;
        }
    }
    unreachable!("the second wait returns");
}

#[tokio::test(start_paused = true)]
async fn locks_of_every_version_are_seen_and_left_alone() {
    for (content, host, pid, txn) in [
        (V1, "br-0", 42, None),
        (V2, "br-0", 42, Some(TXN)),
        (TIKV, "an_unknown_tikv_node", 1, Some(TXN)),
        (V3, "h", 1, Some(TXN)),
        (LEASE, "h", 1, Some(TXN)),
        (FUTURE, "h", 1, None),
    ] {
        let error = refused(PATH, content).await;
        assert_eq!(error.kind(), LockErrorKind::Held, "{content}: {error}");
        assert_eq!(error.holders().total, 1);
        let holder = &error.holders().listed[0];
        assert_eq!(holder.kind, HolderKind::Lock);
        assert_eq!(holder.location, PATH);
        assert_eq!(
            (holder.host.as_deref(), holder.pid),
            (Some(host), Some(pid))
        );
        if let Some(txn) = txn {
            assert_eq!(holder.id, txn);
        }
        assert!(error.message().contains(host), "{error}");
        assert!(error.message().contains("since 2"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_locks_have_a_kind_of_their_own() {
    for content in ["", "{", &V2[..40], "{}", "by hand"] {
        let error = refused(PATH, content).await;
        assert_eq!(error.kind(), LockErrorKind::Broken, "{content:?}: {error}");
        assert_eq!(error.holders().listed[0].kind, HolderKind::Broken);
        assert!(error.holders().listed[0].note.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn others_of_the_family_are_in_the_way() {
    for (suffix, content, kind) in [
        (
            ".INTENT.00112233445546778899aabbccddeeff",
            "",
            HolderKind::Intent,
        ),
        (
            ".INTENT.00112233-4455-4677-8899-aabbccddeeff",
            "",
            HolderKind::Intent,
        ),
        (
            ".INTENT.00112233445546778899aabbccddeeff",
            r#"{"x":1}"#,
            HolderKind::Intent,
        ),
        (".00112233445546778899aabbccddeeff", LEASE, HolderKind::Lock),
        (".bak", "a note", HolderKind::Unknown),
    ] {
        let error = refused(&format!("{PATH}{suffix}"), content).await;
        assert_eq!(error.kind(), LockErrorKind::Held, "{suffix}: {error}");
        assert_eq!(error.holders().listed[0].kind, kind, "{suffix}");
    }
    let error = refused(&format!("{PATH}.00112233445546778899aabbccddeeff"), "").await;
    assert_eq!(error.kind(), LockErrorKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn near_misses_are_not() {
    let store = memory();
    let others = [
        "backup/truncating.lock2",
        "backup/truncating.lockfile.bak",
        "backup/truncating.lock/x",
        "backup/xtruncating.lock",
        "truncating.lock",
    ];
    for path in others {
        write(&store, path, V2).await;
    }
    let lock = lock(&store, config());
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    assert_eq!(lock.status().await.expect("readable").total, 1);
    assert!(guard.release().await.expect("removed").is_clean());
    assert_eq!(names(&store).await.len(), others.len());
}

#[tokio::test(start_paused = true)]
async fn three_of_many_are_named() {
    let store = memory();
    for number in 0..20 {
        write(&store, &format!("{PATH}.bak{number:02}"), "").await;
    }
    let error = lock(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect_err("held");
    assert_eq!(
        (error.holders().listed.len(), error.holders().total),
        (3, 20)
    );
    assert!(error.message().ends_with("and 17 more"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_we_write_is_what_the_others_read() {
    let store = memory();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_729_509_753);
    let mut options = StorageOptions::default();
    options.wall_clock = WallClock::new(move || then);
    let mut config = config();
    config.host = "db-7".to_owned();
    config.pid = 42;
    config.hint = "ask me".to_owned();
    for (ttl, end) in [
        (None, "}"),
        (
            Some(Duration::from_secs(30)),
            r#","expire_at":"2024-10-21T11:23:03Z","lease_ms":30000}"#,
        ),
    ] {
        config.ttl = ttl;
        let lock = with_options(&store, PATH, config.clone(), options.clone());
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        assert_eq!(names(&store).await, [PATH], "the announcement is withdrawn");
        let content = read(&store, PATH).await.expect("there");
        let begin = r#"{"locked_at":"2024-10-21T11:22:33Z","locker_host":"db-7","locker_pid":42,"txn_id":""#;
        let middle = format!(r#"==","hint":"snapshot-prepare: ask me"{end}"#);
        assert!(content.starts_with(begin), "{content}");
        assert!(content.ends_with(&middle), "{content}");
        assert!(guard.release().await.expect("removed").is_clean());
    }
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_exclude_a_writer() {
    let store = memory();
    let lock = |mode| with_mode(&store, "v1/LOCK", config(), mode);
    let first = lock(LockMode::Read)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let second = lock(LockMode::Read)
        .acquire(Duration::ZERO)
        .await
        .expect("shared");
    assert_eq!(first.holder().kind, HolderKind::ReadLock);
    let objects = names(&store).await;
    assert_eq!(objects.len(), 2);
    for name in &objects {
        let number = name.strip_prefix("v1/LOCK.READ.").expect("a read lock");
        assert_eq!(number.len(), 16);
    }
    let error = lock(LockMode::Write)
        .acquire(Duration::ZERO)
        .await
        .expect_err("read");
    assert_eq!(error.holders().total, 2);
    assert_eq!(error.holders().listed[0].kind, HolderKind::ReadLock);
    assert!(first.release().await.expect("removed").is_clean());
    lock(LockMode::Write)
        .acquire(Duration::ZERO)
        .await
        .expect_err("still read");
    assert!(second.release().await.expect("removed").is_clean());

    let writer = lock(LockMode::Write)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    assert_eq!(names(&store).await, ["v1/LOCK.WRIT"]);
    for mode in [LockMode::Read, LockMode::Write] {
        let error = lock(mode)
            .acquire(Duration::ZERO)
            .await
            .expect_err("written");
        assert_eq!(error.holders().listed[0].kind, HolderKind::WriteLock);
    }
    assert!(writer.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn what_is_foreign_can_be_broken_by_the_id_that_status_tells() {
    for (suffix, content) in [
        ("", V1),
        ("", V2),
        ("", ""),
        ("", "{"),
        (".INTENT.00112233445546778899aabbccddeeff", ""),
        (".bak", "a note"),
    ] {
        let store = memory();
        let path = format!("{PATH}{suffix}");
        write(&store, &path, content).await;
        let lock = lock(&store, config());
        let id = lock.status().await.expect("readable").listed[0].id.clone();
        // Another version of it has another id.
        if content.is_empty() || content == V1 {
            write(&store, &path, &format!("{content} ")).await;
            let now = lock.status().await.expect("readable").listed[0].id.clone();
            if suffix.is_empty() {
                assert_ne!(now, id);
                let error = lock.break_lock(&id).await.expect_err("it has changed");
                assert_eq!(error.kind(), LockErrorKind::NotThatHolder);
            }
            lock.break_lock(&now).await.expect("it is there");
        } else {
            lock.break_lock(&id).await.expect("it is there");
        }
        assert_eq!(names(&store).await, [] as [&str; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_overwritten_is_lost_and_left_to_the_other() {
    let store = memory();
    let lock = lock(&store, config());
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    write(&store, PATH, V2).await;
    let error = guard.lost().await;
    assert!(error.message().contains(TXN), "{error}");
    match guard.release().await.expect("it answers") {
        Release::TakenOver(holder) => assert_eq!(holder.id, TXN),
        release => panic!("{release}"),
    }
    assert_eq!(read(&store, PATH).await.as_deref(), Some(V2));
}

#[tokio::test(start_paused = true)]
async fn the_own_lock_damaged_is_told_and_left_for_a_break() {
    let store = memory();
    let lock = lock(&store, config());
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    write(&store, PATH, "damaged").await;
    let error = guard.release().await.expect_err("nobody knows whose it is");
    assert_eq!(error.kind(), LockErrorKind::Broken);
    let id = error.holders().listed[0].id.clone();
    assert!(error.message().contains(&id), "{error}");
    lock.break_lock(&id).await.expect("the way out");
    assert_eq!(names(&store).await, [] as [&str; 0]);
}
