//! What the tests of the whole cannot bring about at will.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::lock::etcd::EtcdConfig;

#[path = "../../../../tests/lock_etcd/server.rs"]
#[allow(dead_code)]
mod server;

use server::Etcd;

fn backend(etcd: &Etcd) -> Backend {
    let target = EtcdConfig::new(&etcd.endpoints, "backup").expect("well formed");
    Backend::new(Arc::new(Dialer::new(target)), &LockConfig::default())
}

const TTL: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_history_that_is_not_kept_is_reason_to_look_again() {
    let etcd = Etcd::start();
    let mut backend = backend(&etcd);
    backend.grant(1, TTL).await.expect("granted");
    let (first, _) = backend.enqueue(1, Vec::new()).await.expect("queued");
    for _ in 0..3 {
        etcd.run(&["put", "other", "x"]);
    }
    etcd.run(&["compaction", &(first.revision + 2).to_string()]);
    let predecessor = Predecessor {
        key: first.key.clone().into_bytes(),
        seen_at: first.revision,
    };
    // It is still there, but whether it had been deleted cannot be told.
    backend.gone(&predecessor).await.expect("look again");

    // A look at the present is good again, and waits.
    let second = Place {
        key: "backup/2".to_owned(),
        lease: 2,
        revision: i64::MAX,
    };
    let present = backend.predecessor(&second).await.expect("read");
    let present = present.expect("the first one");
    assert_eq!(present.key, first.key.as_bytes());
    let mut waiting = std::pin::pin!(backend.gone(&present));
    let pause = Duration::from_millis(300);
    tokio::time::timeout(pause, &mut waiting)
        .await
        .expect_err("it is there");
    etcd.run(&["del", &first.key]);
    waiting.await.expect("gone");
}

#[tokio::test]
async fn every_call_may_act_twice() {
    let etcd = Etcd::start();
    let mut backend = backend(&etcd);
    backend.grant(7, TTL).await.expect("granted");
    let again = backend.grant(7, TTL).await.expect_err("there already");
    assert_eq!(again.kind, FailureKind::LeaseExists);
    let (place, first) = backend.enqueue(7, b"a".to_vec()).await.expect("queued");
    let (same, _) = backend.enqueue(7, b"b".to_vec()).await.expect("queued");
    assert_eq!(place, same);
    assert!(first.is(&place));
    for _ in 0..2 {
        assert!(backend.confirm(&place, b"c".to_vec()).await.expect("asked"));
        assert_eq!(backend.keep_alive(7).await.expect("renewed"), TTL);
    }
    // Confirming changes the value, and nothing else.
    let first = backend.first().await.expect("read").expect("queued");
    assert!(first.is(&place));
    let removed = backend.remove(place.key.as_str(), place.revision);
    assert!(removed.await.expect("asked").is_ok());
    let removed = backend.remove(place.key.as_str(), place.revision);
    assert!(matches!(removed.await.expect("asked"), Err(None)));
    assert!(!backend.confirm(&place, Vec::new()).await.expect("asked"));
    backend.remove_own(7).await.expect("asked");
    assert!(backend.revoke(7).await.expect("asked"));
    assert!(!backend.revoke(7).await.expect("asked"));
    let gone = backend.keep_alive(7).await.expect_err("revoked");
    assert_eq!(gone.kind, FailureKind::LeaseGone);
    let gone = backend.enqueue(7, Vec::new()).await.expect_err("revoked");
    assert_eq!(gone.kind, FailureKind::LeaseGone);
}
