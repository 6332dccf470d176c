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

#[tokio::test]
async fn messages_name_the_path_and_the_store() {
    let lock = lock(&memory(), config());
    assert_eq!(lock.location(), "backup/truncating.lock on InMemory");
    let error = lock.break_lock("x").await.expect_err("nobody has it");
    assert!(error.message().contains(&lock.location()), "{error}");
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

/// The store lists neither.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_or_a_dangling_link_in_the_locks_place_is_left_alone() {
    use snapshot_prepare::lock::LockErrorKind;

    use super::support::PATH;

    for is_folder in [true, false] {
        let (folder, store) = local();
        let place = folder.path().join(PATH);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("creatable");
        if is_folder {
            std::fs::create_dir(&place).expect("creatable");
        } else {
            std::os::unix::fs::symlink("/no/such/file", &place).expect("creatable");
        }
        let error = lock(&store, config()).acquire(Duration::ZERO).await;
        let error = error.expect_err("it is in the way");
        assert_eq!(error.kind(), LockErrorKind::Unreachable);
        assert!(error.message().contains("does not list"), "{error}");
        let left = std::fs::read_dir(place.parent().expect("a folder")).expect("readable");
        assert_eq!(left.count(), 1);
        let kept = std::fs::symlink_metadata(&place).expect("still there");
        assert_eq!(kept.is_dir(), is_folder);
    }
}
