//! The contract of all locks, on memory and on local files.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use snapshot_prepare::lock::RunLock;
use snapshot_prepare::lock::conformance::run;

use super::support::{config, contenders, lock, memory, names};

#[tokio::test(start_paused = true)]
async fn on_memory_without_lease() {
    let store = memory();
    assert_eq!(run(&contenders(&store, config())).await, []);
    assert_eq!(names(&store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn on_memory_with_lease() {
    let store = memory();
    let mut config = config();
    config.ttl = Some(Duration::from_secs(10));
    assert_eq!(run(&contenders(&store, config)).await, []);
    assert_eq!(names(&store).await, [] as [&str; 0]);
}

fn local() -> (tempfile::TempDir, Arc<dyn ObjectStore>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = LocalFileSystem::new_with_prefix(folder.path()).expect("a folder");
    (folder, Arc::new(store))
}

#[tokio::test]
async fn on_local_files() {
    let (_folder, store) = local();
    let mut config = config();
    config.check_interval = Duration::from_millis(50);
    assert_eq!(run(&contenders(&store, config)).await, []);
    assert_eq!(names(&store).await, [] as [&str; 0]);
}

#[tokio::test]
async fn local_files_cannot_be_renewed_so_the_lock_does_not_expire() {
    let (_folder, store) = local();
    let mut config = config();
    config.ttl = Some(Duration::from_secs(10));
    let lock = lock(&store, config);
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    assert!(!guard.expires());
    assert_eq!(guard.holder().expires_at, None);
    let status = lock.status().await.expect("readable");
    assert_eq!(status.listed[0].expires_at, None);
    assert!(guard.release().await.expect("removed").is_clean());
}
