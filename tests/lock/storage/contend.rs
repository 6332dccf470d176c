//! Many contenders for one lock, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use snapshot_prepare::lock::{LockConfig, RunLock};

use super::support::{config, lock, memory, names};

/// Lets `contenders` take the lock until it was taken `rounds` times: never two
/// at once, everybody once at least, nothing left behind.
pub(crate) async fn contend(
    store: &Arc<dyn ObjectStore>,
    config: LockConfig,
    contenders: usize,
    rounds: usize,
) {
    println!("the contenders' seeds are 0..{contenders}");
    let (inside, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..contenders)
        .map(|number| {
            let mut config = config.clone();
            config.seed = Some(number as u64);
            let lock = lock(store, config);
            let (inside, taken) = (Arc::clone(&inside), Arc::clone(&taken));
            tokio::spawn(async move {
                let mut won = 0;
                while won == 0 || taken.load(Ordering::SeqCst) < rounds {
                    let wait = Duration::from_secs(100_000);
                    let guard = lock.acquire(wait).await.expect("it becomes free");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                    tokio::task::yield_now().await;
                    guard.ensure_held().expect("it is held");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    taken.fetch_add(1, Ordering::SeqCst);
                    won += 1;
                    assert!(guard.release().await.expect("removed").is_clean());
                }
                won
            })
        })
        .collect();
    let mut wins = Vec::new();
    for task in tasks {
        wins.push(task.await.expect("no contender dies"));
    }
    println!("wins: {wins:?}");
    assert!(taken.load(Ordering::SeqCst) >= rounds);
    assert_eq!(names(store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn two_on_memory() {
    contend(&memory(), config(), 2, 200).await;
}

#[tokio::test(start_paused = true)]
async fn twenty_on_memory() {
    contend(&memory(), config(), 20, 200).await;
}

#[tokio::test(start_paused = true)]
async fn twenty_on_memory_with_lease() {
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    contend(&memory(), config, 20, 200).await;
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
    contend(&(Arc::new(store) as _), quick(), 2, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_on_local_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = LocalFileSystem::new_with_prefix(folder.path()).expect("a folder");
    contend(&(Arc::new(store) as _), quick(), 20, 200).await;
}
