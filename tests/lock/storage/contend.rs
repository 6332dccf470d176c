//! Many contenders for one lock on storage; see [`contest`].

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use snapshot_prepare::lock::LockConfig;

use super::support::{config, lock, memory, names};
use crate::contest::{ROUNDS, contest};

/// Lets `contenders` fight for the lock: nothing may be left behind.
pub(crate) async fn contend(
    store: &Arc<dyn ObjectStore>,
    config: LockConfig,
    contenders: usize,
    rounds: usize,
) {
    let contender = |config| Box::new(lock(store, config)) as _;
    // As long as the others may be asleep between two attempts.
    let rest = config.backoff_max.min(Duration::from_secs(2));
    contest(contender, &config, contenders, rounds, rest).await;
    assert_eq!(names(store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn two_on_memory() {
    contend(&memory(), config(), 2, ROUNDS).await;
}

#[tokio::test(start_paused = true)]
async fn twenty_on_memory() {
    contend(&memory(), config(), 20, ROUNDS).await;
}

#[tokio::test(start_paused = true)]
async fn twenty_on_memory_with_lease() {
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    contend(&memory(), config, 20, ROUNDS).await;
}

fn quick() -> LockConfig {
    let mut config = config();
    config.backoff_min = Duration::from_millis(1);
    config.backoff_max = Duration::from_millis(50);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_on_local_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = LocalFileSystem::new_with_prefix(folder.path()).expect("a folder");
    contend(&(Arc::new(store) as _), quick(), 2, ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_on_local_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = LocalFileSystem::new_with_prefix(folder.path()).expect("a folder");
    contend(&(Arc::new(store) as _), quick(), 20, ROUNDS).await;
}
