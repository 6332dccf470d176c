//! What the tests of locks on storage share.

use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use snapshot_prepare::lock::storage::{LockMode, StorageLock, StorageOptions};
use snapshot_prepare::lock::{Clock, LockConfig, RunLock};

pub(crate) const PATH: &str = "backup/truncating.lock";

/// The lock of another tool.
pub(crate) const OTHER: &str = r#"{"locked_at":"2026-01-02T03:04:05Z","locker_host":"there","locker_pid":7,"txn_id":"AAAAAAAAAAAAAAAAAAAAAQ==","hint":""}"#;

/// Settings for paused time.
pub(crate) fn config() -> LockConfig {
    let mut config = LockConfig::default();
    config.clock = Clock::Tokio;
    config.check_interval = Duration::from_secs(1);
    config.backoff_min = Duration::from_millis(20);
    config
}

pub(crate) fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

pub(crate) fn lock(store: &Arc<dyn ObjectStore>, config: LockConfig) -> StorageLock {
    with_mode(store, PATH, config, LockMode::Exclusive)
}

pub(crate) fn with_mode(
    store: &Arc<dyn ObjectStore>,
    path: &str,
    config: LockConfig,
    mode: LockMode,
) -> StorageLock {
    let mut options = StorageOptions::default();
    options.mode = mode;
    with_options(store, path, config, options)
}

pub(crate) fn with_options(
    store: &Arc<dyn ObjectStore>,
    path: &str,
    config: LockConfig,
    options: StorageOptions,
) -> StorageLock {
    StorageLock::new(Arc::clone(store), path, config, options).expect("they can work")
}

/// Returns a function that makes contenders.
pub(crate) fn contenders(
    store: &Arc<dyn ObjectStore>,
    config: LockConfig,
) -> impl Fn(&str) -> Box<dyn RunLock> + Sync {
    let store = Arc::clone(store);
    move |hint| {
        let mut config = config.clone();
        config.hint = hint.to_owned();
        Box::new(lock(&store, config))
    }
}

pub(crate) async fn write(store: &Arc<dyn ObjectStore>, path: &str, content: &str) {
    let payload = PutPayload::from(content.to_owned());
    store
        .put(&Path::from(path), payload)
        .await
        .expect("writable");
}

pub(crate) async fn delete(store: &Arc<dyn ObjectStore>, path: &str) {
    store.delete(&Path::from(path)).await.expect("deletable");
}

pub(crate) async fn read(store: &Arc<dyn ObjectStore>, path: &str) -> Option<String> {
    let result = store.get(&Path::from(path)).await.ok()?;
    let bytes = result.bytes().await.expect("readable");
    Some(String::from_utf8(bytes.to_vec()).expect("text"))
}

/// Returns the names of all objects.
pub(crate) async fn names(store: &Arc<dyn ObjectStore>) -> Vec<String> {
    use futures_util::TryStreamExt;
    let objects: Vec<_> = store.list(None).try_collect().await.expect("listable");
    let mut names: Vec<_> = objects
        .iter()
        .map(|meta| meta.location.to_string())
        .collect();
    names.sort();
    names
}
