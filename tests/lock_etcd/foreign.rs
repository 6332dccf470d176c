//! etcdctl's locks and ours exclude each other, and what others do by hand.

use std::time::Duration;

use rustix::process::Signal;
use snapshot_prepare::lock::{LockErrorKind, Release, RunLock};

use crate::process::Process;
use crate::server::{Etcd, LIMIT};
use crate::support::{assert_clean, becomes, give_back, lock, lock_with, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcdctl_excludes_us() {
    let etcd = Etcd::start();
    let ours = lock(&etcd, "backup");
    let theirs = Process::start(etcd.ctl(&["lock", "backup"]));
    let key = format!("backup/{}", theirs.wait_for("backup/"));

    let refused = ours.acquire(Duration::ZERO).await.expect_err("held");
    assert_eq!(refused.kind(), LockErrorKind::Held);
    assert_eq!(refused.holders().listed[0].location, key);
    // Who reports this has to find the holder: key, lease and time left.
    let lease = &key["backup/".len()..];
    for part in [&key, &format!("lease {lease}"), " s left"] {
        assert!(refused.message().contains(part), "{refused} lacks {part}");
    }
    assert_eq!(etcd.leases(), [lease]);
    assert_eq!(etcd.keys("backup/"), [key]);

    let waiting = {
        let ours = ours.clone();
        tokio::spawn(async move { ours.acquire(LIMIT).await })
    };
    becomes("we wait", || etcd.keys("backup/").len() == 2).await;
    assert!(!waiting.is_finished());
    theirs.signal(Signal::INT);
    let guard = soon("the lock", waiting)
        .await
        .expect("no panic")
        .expect("free");
    guard.ensure_held().expect("held");
    give_back(guard).await;
    becomes("etcdctl is gone", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_exclude_etcdctl() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let theirs = Process::start(etcd.ctl(&["lock", "backup"]));
    becomes("etcdctl waits", || etcd.keys("backup/").len() == 2).await;
    assert!(theirs.is_silent(), "etcdctl has the lock that we hold");
    let status = lock(&etcd, "backup").status().await.expect("etcd answers");
    assert_eq!(status.listed[0].id, guard.id());
    let note = status.listed[0].note.as_deref().unwrap_or_default();
    assert!(note.contains("1 waiting"), "{note}");
    assert!(theirs.is_silent(), "etcdctl has the lock that we hold");
    guard.ensure_held().expect("held");
    give_back(guard).await;
    theirs.wait_for("backup/");
    theirs.signal(Signal::INT);
    becomes("etcdctl is gone", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_lease_that_is_revoked_is_a_lost_lock() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let leases = etcd.leases();
    etcd.run(&["lease", "revoke", &leases[0]]);
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.kind(), LockErrorKind::Lost);
    assert!(lost.message().contains("removed"), "{lost}");
    assert_eq!(
        guard.release().await.expect("etcd answers"),
        Release::AlreadyGone
    );
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_key_that_is_deleted_is_a_lost_lock_though_the_lease_lives() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    etcd.run(&["del", "--prefix", "backup/"]);
    assert_eq!(etcd.leases().len(), 1);
    let other = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.holders().listed[0].id, other.id());
    match guard.release().await.expect("etcd answers") {
        Release::TakenOver(holder) => assert_eq!(holder.id, other.id()),
        release => panic!("{release}"),
    }
    other.ensure_held().expect("held");
    give_back(other).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_key_that_was_put_again_is_not_ours() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let key = guard.holder().location.clone();
    etcd.run(&["del", &key]);
    etcd.run(&["put", &key, "somebody"]);
    soon("the loss", guard.lost()).await;
    guard.release().await.expect("etcd answers");
    // It is not ours to delete.
    assert_eq!(etcd.keys("backup/"), [key]);
}

#[tokio::test]
async fn a_key_without_a_lease_holds_until_it_is_broken() {
    let etcd = Etcd::start();
    etcd.run(&["put", "backup/by-hand", "Ann, until Monday"]);
    let ours = lock(&etcd, "backup");
    let refused = ours.acquire(Duration::ZERO).await.expect_err("held");
    for part in ["backup/by-hand", "Ann, until Monday", "no lease"] {
        assert!(refused.message().contains(part), "{refused} lacks {part}");
    }
    let id = refused.holders().listed[0].id.clone();
    let broken = ours.break_lock(&id).await.expect("it is there");
    assert_eq!(broken.location, "backup/by-hand");
    let again = ours.break_lock(&id).await.expect_err("it is gone");
    assert_eq!(again.kind(), LockErrorKind::NotThatHolder);
    let guard = ours.acquire(Duration::ZERO).await.expect("free");
    guard.release().await.expect("etcd answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loses_its_place_in_the_queue_gets_another() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "backup")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let second = lock_with(&etcd.endpoints, "backup", |config| {
        config.hint = "second".to_owned();
    });
    let waiting = tokio::spawn(async move { second.acquire(LIMIT).await });
    becomes("somebody waits", || etcd.keys("backup/").len() == 2).await;
    let own = guard.holder().location.clone();
    let place = etcd.keys("backup/").into_iter().find(|key| *key != own);
    let place = place.expect("two keys");
    etcd.run(&["lease", "revoke", &place["backup/".len()..]]);
    becomes("it waits again", || {
        let keys = etcd.keys("backup/");
        keys.len() == 2 && !keys.contains(&place)
    })
    .await;
    guard.release().await.expect("etcd answers");
    let second = soon("the lock", waiting)
        .await
        .expect("no panic")
        .expect("free");
    assert_eq!(second.holder().hint.as_deref(), Some("second"));
    second.release().await.expect("etcd answers");
    assert_clean(&etcd, "backup");
}
