//! Holders that die or stand still, and an etcd that is away.

use std::time::Duration;

use rustix::process::Signal;
use snapshot_prepare::lock::{LockErrorKind, Release, RunLock};

use crate::process::Process;
use crate::server::{Etcd, LIMIT};
use crate::support::{assert_clean, becomes, give_back, is_renewed, lock, lock_with, soon};

const NOW: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_holder_that_ends_frees_the_lock() {
    let etcd = Etcd::start();
    // With a lease that the test would not outwait.
    let mut holder = Process::holder(&etcd, "backup", LONG);
    holder.wait_for("held ");
    holder.end();
    assert_eq!(holder.wait_for("release "), "Ok(Released)");
    assert_clean(&etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_is_killed_frees_the_lock_by_and_by() {
    let etcd = Etcd::start();
    let holder = Process::holder(&etcd, "backup", SHORT);
    let id = holder.wait_for("held ");
    let ours = lock(&etcd, "backup");
    let refused = ours.acquire(NOW).await.expect_err("held");
    assert_eq!(refused.holders().listed[0].id, id);
    holder.signal(Signal::KILL);
    let guard = soon("the lock", ours.acquire(LIMIT)).await.expect("free");
    give_back(guard).await;
    becomes("its lease has ended", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_stood_still_knows_that_it_lost_the_lock() {
    let etcd = Etcd::start();
    let mut holder = Process::holder(&etcd, "backup", SHORT);
    holder.wait_for("held ");
    holder.signal(Signal::STOP);
    // That somebody else gets it shows that its lease has ended.
    let ours = lock(&etcd, "backup");
    let guard = soon("the lock", ours.acquire(LIMIT)).await.expect("free");
    holder.signal(Signal::CONT);
    holder.wait_for("lost ");
    let release = holder.wait_for("release ");
    assert!(release.starts_with("Ok(TakenOver"), "{release}");
    holder.end();
    guard.ensure_held().expect("held");
    give_back(guard).await;
}

#[tokio::test]
async fn an_etcd_that_is_away_for_less_than_the_lease_does_no_harm() {
    let etcd = Etcd::start();
    let lock = lock_with(&etcd.endpoints, "backup", |config| {
        config.ttl = Some(Duration::from_secs(18));
    });
    let guard = lock.acquire(NOW).await.expect("free");
    etcd.pause(0);
    // A third of the lease and more, so that a renewal meets with silence.
    tokio::time::sleep(Duration::from_secs(8)).await;
    etcd.resume(0);
    is_renewed(&guard).await;
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn an_etcd_that_is_away_for_longer_loses_the_lock_by_our_own_clock() {
    let etcd = Etcd::start();
    let ours = lock_with(&etcd.endpoints, "backup", |config| {
        config.ttl = Some(SHORT);
        config.call_timeout = Duration::from_secs(1);
    });
    let guard = ours.acquire(NOW).await.expect("free");
    etcd.pause(0);
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.kind(), LockErrorKind::Lost);
    assert!(lost.message().contains("no renewal"), "{lost}");
    let silent = soon("an error", ours.acquire(NOW))
        .await
        .expect_err("silent");
    assert_eq!(silent.kind(), LockErrorKind::Unreachable);
    etcd.resume(0);
    // Lost is lost, though etcd may still have the key.
    guard.ensure_held().expect_err("lost");
    let release = guard.release().await.expect("etcd answers");
    assert!(!release.is_clean(), "{release}");
    let guard = soon("the lock", ours.acquire(LIMIT)).await.expect("free");
    guard.release().await.expect("etcd answers");
}

#[tokio::test]
async fn a_release_does_not_wait_for_ever() {
    let etcd = Etcd::start();
    let lock = lock_with(&etcd.endpoints, "backup", |config| {
        config.release_timeout = Duration::from_secs(2);
    });
    let guard = lock.acquire(NOW).await.expect("free");
    etcd.pause(0);
    let error = soon("an error", guard.release()).await.expect_err("silent");
    assert_eq!(error.kind(), LockErrorKind::Unreachable);
    etcd.resume(0);
    // Nothing renews it any more.
    becomes("its lease has ended", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holder_and_waiter_outlive_a_restart() {
    let mut etcd = Etcd::start();
    let long = |hint: &str| {
        lock_with(&etcd.endpoints, "backup", |config| {
            config.ttl = Some(Duration::from_secs(20));
            config.hint = hint.to_owned();
        })
    };
    let (first, second) = (long("first"), long("second"));
    let guard = first.acquire(NOW).await.expect("free");
    let waiting = tokio::spawn(async move { second.acquire(LIMIT).await });
    becomes("somebody waits", || etcd.keys("backup/").len() == 2).await;
    etcd.restart();
    is_renewed(&guard).await;
    assert!(!waiting.is_finished());
    give_back(guard).await;
    let guard = soon("the lock", waiting)
        .await
        .expect("no panic")
        .expect("free");
    assert_eq!(guard.holder().hint.as_deref(), Some("second"));
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}

/// One that was set up anew has lower numbers than what a waiter asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_forgot_all_loses_the_holders_lock_and_lets_the_waiter_in() {
    let mut etcd = Etcd::start();
    for _ in 0..20 {
        etcd.run(&["put", "other", "x"]);
    }
    let guard = lock(&etcd, "backup").acquire(NOW).await.expect("free");
    let second = lock(&etcd, "backup");
    let waiting = tokio::spawn(async move { second.acquire(LIMIT).await });
    becomes("somebody waits", || etcd.keys("backup/").len() == 2).await;
    etcd.restart_empty();
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.kind(), LockErrorKind::Lost);
    let next = soon("the lock", waiting).await.expect("no panic");
    let next = next.expect("nobody else has it");
    let release = guard.release().await.expect("etcd answers");
    assert_ne!(release, Release::Released);
    next.ensure_held().expect("left alone");
    give_back(next).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_is_full_lets_nobody_in_and_the_holder_go_on() {
    let etcd = Etcd::start_with(1, &["--quota-backend-bytes=1000000"]);
    let guard = lock(&etcd, "backup").acquire(NOW).await.expect("free");
    let much = "x".repeat(100_000);
    let mut puts = 0;
    while etcd.run(&["alarm", "list"]).is_empty() {
        puts += 1;
        assert!(puts < 100, "it is never full");
        let put = etcd.ctl(&["put", &format!("other/{puts}"), &much]).output();
        put.expect("etcdctl is installed");
    }
    for name in ["backup", "another"] {
        let error = lock(&etcd, name).acquire(NOW).await.expect_err("full");
        assert!(error.message().contains("space exceeded"), "{error}");
    }
    is_renewed(&guard).await;
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}
