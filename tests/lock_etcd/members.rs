//! Three members, of which one and then another dies.

use std::time::Duration;

use snapshot_prepare::lock::{LockErrorKind, RunLock};

use crate::server::{Etcd, LIMIT};
use crate::support::{assert_clean, becomes, give_back, is_renewed, lock_with, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_can_die_and_two_cannot() {
    let mut etcd = Etcd::start_with(3, &[]);
    let lock = |hint: &str| {
        lock_with(&etcd.endpoints, "backup", |config| {
            config.ttl = Some(Duration::from_secs(12));
            config.hint = hint.to_owned();
        })
    };
    let (first, second, third) = (lock("first"), lock("second"), lock("third"));
    let guard = first.acquire(Duration::ZERO).await.expect("free");
    let waiting = tokio::spawn(async move { second.acquire(LIMIT).await });
    becomes("somebody waits", || etcd.keys("backup/").len() == 2).await;

    // Both are connected to the first one.
    etcd.kill(0);
    is_renewed(&guard).await;
    let refused = third.acquire(Duration::ZERO).await.expect_err("held");
    assert_eq!(refused.kind(), LockErrorKind::Held);
    give_back(guard).await;
    let guard = soon("the lock", waiting)
        .await
        .expect("no panic")
        .expect("free");
    assert_eq!(guard.holder().hint.as_deref(), Some("second"));

    // What is left has no majority, and says so or says nothing.
    etcd.kill(1);
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.kind(), LockErrorKind::Lost);
    let error = soon("an error", third.acquire(Duration::ZERO)).await;
    assert_eq!(
        error.expect_err("no majority").kind(),
        LockErrorKind::Unreachable
    );
    soon("an error", guard.release())
        .await
        .expect_err("no majority");
}

#[tokio::test]
async fn a_member_that_stands_still_is_left_for_another() {
    let etcd = Etcd::start_with(3, &[]);
    let lock = lock_with(&etcd.endpoints, "backup", |config| {
        config.ttl = Some(Duration::from_secs(12));
    });
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    // Its connections stay open, and nothing comes back on them.
    etcd.pause(0);
    is_renewed(&guard).await;
    let refused = lock.acquire(Duration::ZERO).await.expect_err("held");
    assert_eq!(refused.kind(), LockErrorKind::Held);
    give_back(guard).await;
    etcd.resume(0);
    becomes("nothing is left", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}
