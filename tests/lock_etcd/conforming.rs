//! The contract of all locks, and that nothing is left behind.

use std::time::Duration;

use snapshot_prepare::lock::conformance::run;
use snapshot_prepare::lock::{LockErrorKind, RunLock};

use crate::server::Etcd;
use crate::support::{assert_clean, becomes, lock, lock_with, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let etcd = Etcd::start();
    let contender = |hint: &str| {
        Box::new(lock_with(&etcd.endpoints, "backup", |config| {
            config.hint = hint.to_owned();
        })) as Box<dyn RunLock>
    };
    assert_eq!(run(&contender).await, []);
    // What was dropped is removed in the background.
    becomes("no lease is left", || etcd.leases().is_empty()).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn the_key_is_laid_out_like_a_mutex_of_etcd() {
    let etcd = Etcd::start();
    let guard = lock(&etcd, "/a/b")
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let leases = etcd.leases();
    assert_eq!(leases.len(), 1);
    assert_eq!(etcd.keys("/a/b/"), [format!("/a/b/{}", leases[0])]);
    let json = etcd.run(&["get", "--prefix", "/a/b/", "--write-out=json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let kv = &json["kvs"][0];
    assert_eq!(kv["create_revision"].as_u64(), guard.fence());
    let lease = kv["lease"].as_i64().expect("bound to a lease");
    assert_eq!(format!("{lease:x}"), leases[0]);
    assert_eq!(guard.id(), format!("{lease:x}-{}", kv["create_revision"]));
    guard.release().await.expect("etcd answers");
    assert_clean(&etcd, "/a/b");
}

#[tokio::test]
async fn namespaces_keep_locks_apart() {
    use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};

    let etcd = Etcd::start();
    let of = |namespace: &str| {
        let target = EtcdConfig::new(&etcd.endpoints, "backup").expect("well formed");
        let target = target.with_namespace(namespace);
        EtcdLock::new(target, crate::support::config_with(|_| {})).expect("can work")
    };
    let one = of("ks1/").acquire(Duration::ZERO).await.expect("free");
    let other = of("ks2/").acquire(Duration::ZERO).await.expect("free");
    let refused = of("ks1/").acquire(Duration::ZERO).await;
    assert_eq!(refused.expect_err("held").kind(), LockErrorKind::Held);
    assert_eq!(
        lock(&etcd, "ks2/backup")
            .status()
            .await
            .expect("read")
            .total,
        1
    );
    drop((one, other));
    becomes("both are released", || etcd.leases().is_empty()).await;
}

#[tokio::test]
async fn what_the_server_grants_counts() {
    // A server that ticks this slowly grants no lease under 15 s.
    let slow = ["--heartbeat-interval=1000", "--election-timeout=10000"];
    let etcd = Etcd::start_with(1, &slow);
    let short = lock_with(&etcd.endpoints, "backup", |config| {
        config.ttl = Some(Duration::from_secs(2));
    });
    let guard = soon("the lock", short.acquire(Duration::from_secs(60)))
        .await
        .expect("free");
    assert!(guard.remaining() > Duration::from_secs(2), "{guard:?}");
    guard.release().await.expect("etcd answers");
}
