//! The lock on a server that speaks S3; see [`s3_server`](super::s3_server).

use std::env;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use snapshot_prepare::lock::conformance::run;
use snapshot_prepare::lock::storage::{StorageLock, StorageOptions};
use snapshot_prepare::lock::{Clock, LockConfig, LockErrorKind, LockUrl, RunLock};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::contend::contend;
use super::s3_server::{Moto, SECRET};
use super::support::{OTHER, PATH, names, read, write};
use crate::contest::ROUNDS;

fn s3(endpoint: &str, bucket: &str) -> Arc<AmazonS3> {
    // Opening a lock by its URL chooses the crypto for TLS, without which no
    // client can be built, also one that uses none.
    open("file:///tmp/x", config());
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("key")
        .with_secret_access_key(SECRET)
        .with_bucket_name(bucket)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        })
        .build();
    Arc::new(store.expect("the settings can work"))
}

fn open(url: &str, config: LockConfig) -> StorageLock {
    let Ok(LockUrl::Storage(url)) = url.parse() else {
        panic!("{url} is a lock on storage");
    };
    StorageLock::open(&url, config, options()).expect("the settings can work")
}

fn config() -> LockConfig {
    let mut config = LockConfig::default();
    config.clock = Clock::System;
    config.check_interval = Duration::from_millis(100);
    config.backoff_min = Duration::from_millis(5);
    config.backoff_max = Duration::from_millis(200);
    config.margin = Duration::from_millis(500);
    config
}

fn options() -> StorageOptions {
    let mut options = StorageOptions::default();
    options.grace = Duration::from_secs(1);
    options
}

fn lock(store: &Arc<AmazonS3>, config: LockConfig) -> StorageLock {
    let lock = StorageLock::new(Arc::clone(store) as _, PATH, config, options());
    let lock = lock.expect("the settings can work");
    lock.with_pages(Arc::clone(store) as _, Arc::clone(store) as _)
}

async fn conforms(config: LockConfig) {
    let Some(moto) = Moto::start() else {
        return;
    };
    let store = s3(&moto.endpoint, "locks");
    let contender = |hint: &str| {
        let mut config = config.clone();
        config.hint = hint.to_owned();
        Box::new(lock(&store, config)) as Box<dyn RunLock>
    };
    assert_eq!(run(&contender).await, []);
    assert_eq!(names(&(store as _)).await, [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_without_lease() {
    conforms(config()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_with_lease() {
    let mut config = config();
    config.ttl = Some(Duration::from_secs(5));
    conforms(config).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_contenders() {
    let Some(moto) = Moto::start() else {
        return;
    };
    contend(&(s3(&moto.endpoint, "locks") as _), config(), 2, ROUNDS).await;
}

/// The server answers one call at a time, some hundred a second at best: what
/// counts is that those who wait do not keep it busy. They come back after up to
/// 2 s, the longest pause there is by default. Takes a minute or two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_contenders() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let mut config = config();
    config.backoff_max = Duration::from_secs(2);
    contend(&(s3(&moto.endpoint, "locks") as _), config, 20, ROUNDS).await;
}

#[tokio::test]
async fn a_lease_is_renewed_and_shown() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let s3 = s3(&moto.endpoint, "locks");
    let store: Arc<dyn ObjectStore> = s3.clone();
    let mut config = config();
    config.ttl = Some(Duration::from_secs(3));
    let lock = lock(&s3, config);
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    assert!(guard.expires(), "this store can renew");
    let first = read(&store, PATH).await.expect("there");
    assert!(first.contains(r#""lease_ms":3000"#), "{first}");
    while read(&store, PATH).await.as_ref() == Some(&first) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    guard.ensure_held().expect("renewed");
    assert!(guard.release().await.expect("removed").is_clean());
    assert_eq!(names(&store).await, [] as [&str; 0]);
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let mut config = config();
    // Long enough for a first answer on a busy machine.
    config.call_timeout = Duration::from_secs(3);
    for (bucket, kind) in [
        ("denied", LockErrorKind::Permission),
        ("busy", LockErrorKind::Throttled),
        ("down", LockErrorKind::Throttled),
        ("missing", LockErrorKind::Other),
    ] {
        let lock = lock(&s3(&moto.endpoint, bucket), config.clone());
        let error = lock.acquire(Duration::ZERO).await.expect_err(bucket);
        assert_eq!(error.kind(), kind, "{bucket}: {error}");
        let error = lock.status().await.expect_err(bucket);
        assert_eq!(error.kind(), kind, "{bucket}: {error}");
        assert!(!error.to_string().contains(SECRET));
        assert!(!format!("{lock:?} {error:?}").contains(SECRET));
    }
    let nobody = s3("http://127.0.0.1:1", "locks");
    let error = lock(&nobody, config)
        .status()
        .await
        .expect_err("nobody there");
    assert_eq!(error.kind(), LockErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn odd_names_are_taken_as_they_stand() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let s3 = s3(&moto.endpoint, "locks");
    for (path, name) in [
        ("ä b/x y+z%20&=.lock", "ä b/x y+z%20&=.lock"),
        ("it's \"quoted\" (1).lock", "it's \"quoted\" (1).lock"),
        ("./a//b.lock", "a/b.lock"),
        ("/root.lock", "root.lock"),
    ] {
        let lock = StorageLock::new(Arc::clone(&s3) as _, path, config(), options());
        let lock = lock.expect(path);
        let lock = lock.with_pages(Arc::clone(&s3) as _, Arc::clone(&s3) as _);
        let guard = lock.acquire(Duration::ZERO).await.expect(path);
        assert_eq!(names(&(Arc::clone(&s3) as _)).await, [name]);
        let refused = lock.acquire(Duration::ZERO).await.expect_err(path);
        assert_eq!(refused.holders().listed[0].id, guard.id(), "{path}");
        assert!(guard.release().await.expect(path).is_clean());
        assert!(lock.status().await.expect(path).is_empty());
    }
}

#[tokio::test]
async fn a_listing_of_many_pages_is_read_to_its_end() {
    let Some(moto) = Moto::start_with(&[("MOTO_S3_DEFAULT_MAX_KEYS", "2")]) else {
        return;
    };
    let s3 = s3(&moto.endpoint, "locks");
    let lock = lock(&s3, config());
    let store: Arc<dyn ObjectStore> = s3;
    for number in 0..5 {
        write(&store, &format!("{PATH}.{number:032x}"), OTHER).await;
    }
    let status = tokio::time::timeout(Duration::from_secs(60), lock.status()).await;
    let status = status.expect("it ends").expect("readable");
    assert_eq!(status.total, 5);
}

/// Where every version of an object is kept, one that was deleted is gone.
#[tokio::test]
async fn a_bucket_that_keeps_versions_does_no_harm() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let s3 = s3(&moto.endpoint, "versioned");
    let mut config = config();
    config.ttl = Some(Duration::from_secs(3));
    let lock = lock(&s3, config);
    for _ in 0..2 {
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        let (held_until, id) = (guard.valid_until(), guard.id().to_owned());
        while guard.valid_until() == held_until {
            guard.ensure_held().expect("it is renewed in time");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let status = lock.status().await.expect("readable");
        assert_eq!((status.total, &status.listed[0].id), (1, &id));
        assert!(guard.release().await.expect("removed").is_clean());
    }
    assert!(lock.status().await.expect("readable").is_empty());
}

/// The lock's URL for the process that holds it; see [`holder`].
const HOLD: &str = "SNAPSHOT_PREPARE_TEST_HOLD";

/// Not a test but the process of one: takes the lock, says so, and holds it.
#[tokio::test]
async fn holder() {
    let Ok(url) = env::var(HOLD) else {
        return;
    };
    let mut config = config();
    config.ttl = Some(Duration::from_secs(4));
    let guard = open(&url, config)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    println!("held {} {}", guard.id(), guard.expires());
    guard.lost().await;
    println!("lost");
}

/// What the process of a holder says.
type Words = Lines<BufReader<ChildStdout>>;

/// Returns what follows `word` in the next line that has it.
async fn told(words: &mut Words, word: &str) -> String {
    loop {
        let line = words
            .next_line()
            .await
            .expect("readable")
            .expect("a holder");
        if let Some((_, rest)) = line.split_once(word) {
            return rest.to_owned();
        }
    }
}

/// Starts a process that holds the lock, and returns it with the lock's id and
/// what else it says.
async fn hold(url: &str, endpoint: &str) -> (Child, String, Words) {
    let mut process = Command::new(env::current_exe().expect("a path"))
        .args(["storage::s3::holder", "--exact", "--nocapture"])
        .env(HOLD, url)
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the test starts itself");
    let mut words = BufReader::new(process.stdout.take().expect("piped")).lines();
    let held = told(&mut words, "held ").await;
    let (id, _) = held.split_once(' ').expect("two words");
    (process, id.to_owned(), words)
}

#[tokio::test]
async fn a_holder_that_was_stopped_past_its_lease_reports_the_loss() {
    use rustix::process::{Pid, Signal, kill_process};
    let Some(moto) = Moto::start() else {
        return;
    };
    let (process, id, mut words) = hold(&format!("s3://locks/{PATH}"), &moto.endpoint).await;
    let pid = i32::try_from(process.id().expect("it runs")).expect("small");
    let pid = Pid::from_raw(pid).expect("not zero");
    kill_process(pid, Signal::STOP).expect("it is ours");
    let mut config = config();
    config.ttl = Some(Duration::from_secs(4));
    let lock = lock(&s3(&moto.endpoint, "locks"), config);
    let guard = lock
        .acquire(Duration::from_secs(120))
        .await
        .expect("it expires");
    assert_ne!(guard.id(), id);
    kill_process(pid, Signal::CONT).expect("it is ours");
    told(&mut words, "lost").await;
    let status = lock.status().await.expect("readable");
    assert_eq!(status.listed[0].id, guard.id(), "left to the next");
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test]
async fn the_lock_of_a_killed_holder_is_taken_over_when_it_has_expired() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let url = format!("s3://locks/{PATH}");
    let (mut process, id, _words) = hold(&url, &moto.endpoint).await;
    let mut config = config();
    config.ttl = Some(Duration::from_secs(4));
    let lock = lock(&s3(&moto.endpoint, "locks"), config);
    let error = lock.acquire(Duration::ZERO).await.expect_err("it is held");
    assert_eq!(error.holders().listed[0].id, id);
    // While it lives it is renewed, however long we wait.
    let error = lock
        .acquire(Duration::from_secs(9))
        .await
        .expect_err("it is held");
    assert_eq!(error.holders().listed[0].id, id);
    process.kill().await.expect("it is killed");
    let guard = lock
        .acquire(Duration::from_secs(60))
        .await
        .expect("it expires");
    assert_ne!(guard.id(), id);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test]
async fn the_lock_of_a_killed_holder_on_local_files_stays_until_it_is_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}/ä b/x.lock", folder.path().display());
    let (mut process, id, _words) = hold(&url, "http://127.0.0.1:1").await;
    process.kill().await.expect("it is killed");
    let lock = open(&url, config());
    let error = lock
        .acquire(Duration::from_secs(3))
        .await
        .expect_err("it stays");
    assert_eq!(error.holders().listed[0].id, id);
    lock.break_lock("another").await.expect_err("not that one");
    lock.break_lock(&id).await.expect("that one");
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    assert!(folder.path().join("ä b/x.lock").is_file());
    assert!(guard.release().await.expect("removed").is_clean());
}
