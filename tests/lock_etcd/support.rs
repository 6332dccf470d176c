use std::time::Duration;

use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};
use snapshot_prepare::lock::{LockConfig, LockGuard, Release};

use crate::server::{Etcd, LIMIT};

/// Returns a lock with these settings.
pub(crate) fn lock_with(
    endpoints: &[String],
    name: &str,
    change: impl FnOnce(&mut LockConfig),
) -> EtcdLock {
    let target = EtcdConfig::new(endpoints, name).expect("well formed");
    EtcdLock::new(target, config_with(change)).expect("the settings can work")
}

pub(crate) fn config_with(change: impl FnOnce(&mut LockConfig)) -> LockConfig {
    let mut config = LockConfig::default();
    config.ttl = Some(Duration::from_secs(6));
    config.margin = Duration::from_millis(500);
    config.call_timeout = Duration::from_secs(5);
    change(&mut config);
    config
}

/// Returns a lock with the settings that most tests use.
pub(crate) fn lock(etcd: &Etcd, name: &str) -> EtcdLock {
    lock_with(&etcd.endpoints, name, |_| {})
}

/// Waits until something is so.
pub(crate) async fn becomes(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, waiting).await;
    waited.unwrap_or_else(|_| panic!("it never came that {what}"));
}

/// Waits until a renewal was acknowledged that began after now.
pub(crate) async fn is_renewed(guard: &LockGuard) {
    // One may be under way.
    for _ in 0..2 {
        let before = guard.valid_until();
        becomes("the lock was renewed", || {
            guard.ensure_held().expect("held");
            guard.valid_until() > before
        })
        .await;
    }
}

/// Waits for what has to come.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(LIMIT, future).await;
    waited.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Releases a lock that was held all the time.
pub(crate) async fn give_back(guard: LockGuard) {
    let release = guard.release().await.expect("etcd answers");
    assert_eq!(release, Release::Released);
}

/// Checks that the lock has left nothing behind.
pub(crate) fn assert_clean(etcd: &Etcd, name: &str) {
    assert_eq!(etcd.keys(&format!("{name}/")), Vec::<String>::new());
    assert_eq!(etcd.leases(), Vec::<String>::new());
}
