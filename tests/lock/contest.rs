//! Many contenders for one lock, again and again, whatever the lock lies on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use snapshot_prepare::lock::{LockConfig, LockGuard, Release, RunLock};
use tokio::time::sleep;

/// How often the lock is taken.
pub(crate) const ROUNDS: usize = 200;

/// What the contenders see of each other.
#[derive(Default)]
struct Board {
    inside: AtomicUsize,
    taken: AtomicUsize,
    fence: AtomicU64,
}

impl Board {
    /// Has the lock for a moment, in which nobody may be met.
    async fn enter(&self, guard: &LockGuard) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
        if let Some(fence) = guard.fence() {
            let earlier = self.fence.swap(fence, Ordering::SeqCst);
            assert!(earlier < fence, "fence {fence} after {earlier}");
        }
        sleep(Duration::from_millis(1)).await;
        guard.ensure_held().expect("it is held");
        assert_eq!(self.inside.fetch_sub(1, Ordering::SeqCst), 1, "two hold it");
        self.taken.fetch_add(1, Ordering::SeqCst);
    }
}

/// Lets so many contend until the lock was taken `rounds` times: never two at
/// once, everybody once at least, each release clean. `contender` makes one with
/// these settings. Who had the lock rests for up to `rest`, so that others come
/// into their own. Returns how often each had it.
pub(crate) async fn contest(
    contender: impl Fn(LockConfig) -> Box<dyn RunLock>,
    config: &LockConfig,
    contenders: usize,
    rounds: usize,
    rest: Duration,
) -> Vec<usize> {
    println!("{contenders} contenders, {rounds} rounds; their seeds are 0..{contenders}");
    let board = Arc::new(Board::default());
    let tasks: Vec<_> = (0..contenders as u64)
        .map(|seed| {
            let mut config = config.clone();
            config.seed = Some(seed);
            let (board, lock) = (Arc::clone(&board), contender(config));
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            tokio::spawn(async move {
                let mut wins = 0;
                while wins == 0 || board.taken.load(Ordering::SeqCst) < rounds {
                    let wait = Duration::from_secs(100_000);
                    let guard = lock.acquire(wait).await.expect("it becomes free");
                    board.enter(&guard).await;
                    wins += 1;
                    let release = guard.release().await.expect("it is removed");
                    assert_eq!(release, Release::Released);
                    sleep(rest.mul_f64(random.random())).await;
                }
                wins
            })
        })
        .collect();
    let mut wins = Vec::new();
    for task in tasks {
        wins.push(task.await.expect("no contender dies"));
    }
    println!("wins: {wins:?}");
    assert!(wins.iter().all(|wins| *wins > 0), "{wins:?}");
    assert!(wins.iter().sum::<usize>() >= rounds, "{wins:?}");
    wins
}
