//! Users, passwords, rights and tokens.

use std::time::Duration;

use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};
use snapshot_prepare::lock::{LockErrorKind, Release, RunLock};

use crate::server::Etcd;
use crate::support::{assert_clean, config_with, give_back, is_renewed, soon};

/// Starts an etcd on which `ann` may lock `backup` and `bob` may do nothing.
fn with_users(more: &[&str]) -> Etcd {
    // Checking a password is made cheap, lest a busy machine take longer for it
    // than a token lasts.
    let mut etcd = Etcd::start_with(1, &[&["--bcrypt-cost=4"], more].concat());
    for arguments in [
        "user add root:rootsecret",
        "role add root",
        "user grant-role root root",
        "user add ann:annsecret",
        "role add locks",
        "role grant-permission locks --prefix=true readwrite backup/",
        "user grant-role ann locks",
        "user add bob:bobsecret",
        "auth enable",
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        etcd.run(&arguments);
    }
    etcd.user = Some("root:rootsecret".to_owned());
    etcd
}

fn lock_of(etcd: &Etcd, user: Option<(&str, &str)>) -> EtcdLock {
    lock_for(etcd, user, Duration::from_secs(6))
}

fn lock_for(etcd: &Etcd, user: Option<(&str, &str)>, ttl: Duration) -> EtcdLock {
    let mut target = EtcdConfig::new(&etcd.endpoints, "backup").expect("well formed");
    if let Some((user, password)) = user {
        target = target.with_user(user, password);
    }
    let config = config_with(|config| config.ttl = Some(ttl));
    EtcdLock::new(target, config).expect("the settings can work")
}

const ANN: Option<(&str, &str)> = Some(("ann", "annsecret"));

#[tokio::test]
async fn who_may_not_is_told_so() {
    let etcd = with_users(&[]);
    for user in [
        None,
        Some(("ann", "wrongsecret")),
        Some(("nobody", "annsecret")),
        Some(("bob", "bobsecret")),
    ] {
        let lock = lock_of(&etcd, user);
        let refused = soon("an error", lock.acquire(Duration::from_secs(600))).await;
        let refused = refused.expect_err("not allowed");
        // At once: waiting longer would change nothing.
        assert_eq!(
            refused.kind(),
            LockErrorKind::Permission,
            "{user:?}: {refused}"
        );
        let status = lock.status().await.expect_err("not allowed");
        assert_eq!(
            status.kind(),
            LockErrorKind::Permission,
            "{user:?}: {status}"
        );
        for shown in [format!("{refused} {refused:?}"), format!("{lock:?}")] {
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn who_may_gets_the_lock() {
    let etcd = with_users(&[]);
    let lock = lock_of(&etcd, ANN);
    let guard = lock
        .acquire(Duration::ZERO)
        .await
        .expect("free and allowed");
    let status = lock.status().await.expect("allowed");
    assert_eq!(status.listed[0].id, guard.id());
    let refused = lock.acquire(Duration::ZERO).await.expect_err("held");
    assert_eq!(refused.kind(), LockErrorKind::Held);
    assert_eq!(guard.release().await.expect("allowed"), Release::Released);
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_login_that_nobody_wants_does_no_harm() {
    let etcd = Etcd::start();
    let guard = lock_of(&etcd, ANN)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_token_that_expires_is_replaced() {
    // Shorter than the time between two renewals.
    let etcd = with_users(&["--auth-token-ttl=2"]);
    let guard = lock_for(&etcd, ANN, Duration::from_secs(12))
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    is_renewed(&guard).await;
    assert_eq!(guard.release().await.expect("allowed"), Release::Released);
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn rights_that_change_make_tokens_old_and_are_asked_for_again() {
    let etcd = with_users(&[]);
    let guard = lock_of(&etcd, ANN)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    // Whatever changes, etcd refuses the tokens from before.
    etcd.run(&["user", "add", "carl:carlsecret"]);
    is_renewed(&guard).await;
    assert_eq!(guard.release().await.expect("allowed"), Release::Released);
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn rights_that_are_taken_away_lose_the_lock() {
    let etcd = with_users(&[]);
    let guard = lock_of(&etcd, ANN)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    etcd.run(&["user", "revoke-role", "ann", "locks"]);
    let lost = soon("the loss", guard.lost()).await;
    assert_eq!(lost.kind(), LockErrorKind::Lost);
    // Nothing renews it, so it is gone soon, if it is not by now.
    if let Err(error) = guard.release().await {
        assert_eq!(error.kind(), LockErrorKind::Permission);
    }
}
