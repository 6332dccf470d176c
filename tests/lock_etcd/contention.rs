//! Many contenders, many rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use snapshot_prepare::lock::{Release, RunLock};

use crate::server::{Etcd, LIMIT};
use crate::support::{assert_clean, lock, soon};

const ROUNDS: usize = 200;

/// What the contenders see of each other.
#[derive(Default)]
struct Board {
    inside: AtomicBool,
    rounds: AtomicUsize,
    fence: AtomicU64,
}

impl Board {
    /// Notes that somebody has the lock, whom nobody may meet.
    async fn enter(&self, fence: u64) {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two at once");
        let earlier = self.fence.swap(fence, Ordering::SeqCst);
        assert!(earlier < fence, "fence {fence} after {earlier}");
        tokio::task::yield_now().await;
        self.rounds.fetch_add(1, Ordering::SeqCst);
        assert!(self.inside.swap(false, Ordering::SeqCst), "two at once");
    }

    fn is_done(&self, rounds: usize) -> bool {
        self.rounds.load(Ordering::SeqCst) >= rounds
    }
}

/// Lets so many contend until there were so many rounds.
async fn contend(etcd: &Etcd, contenders: usize, rounds: usize) {
    let board = Arc::new(Board::default());
    let tasks: Vec<_> = (0..contenders)
        .map(|_| {
            let (board, lock) = (Arc::clone(&board), lock(etcd, "backup"));
            tokio::spawn(async move {
                let mut wins = 0;
                while wins == 0 || !board.is_done(rounds) {
                    let guard = lock.acquire(LIMIT).await.expect("it becomes free");
                    guard.ensure_held().expect("held");
                    board.enter(guard.fence().expect("etcd has one")).await;
                    guard.ensure_held().expect("held");
                    wins += 1;
                    let release = guard.release().await.expect("etcd answers");
                    assert_eq!(release, Release::Released);
                }
                wins
            })
        })
        .collect();
    let mut wins = Vec::new();
    for task in tasks {
        wins.push(
            soon("the end of a contender", task)
                .await
                .expect("no panic"),
        );
    }
    assert!(wins.iter().all(|&wins: &usize| wins > 0), "{wins:?}");
    assert!(wins.iter().sum::<usize>() >= rounds, "{wins:?}");
    assert_clean(etcd, "backup");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_contenders() {
    contend(&Etcd::start(), 2, ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_contenders() {
    contend(&Etcd::start(), 20, ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contenders_while_history_is_compacted() {
    let etcd = Arc::new(Etcd::start());
    let is_over = Arc::new(AtomicBool::new(false));
    let compacting = {
        let (etcd, is_over) = (Arc::clone(&etcd), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let mut compactions = 0;
            while !is_over.load(Ordering::SeqCst) {
                let put = etcd.run(&["put", "other", "x", "--write-out=json"]);
                let put: serde_json::Value = serde_json::from_str(&put).expect("JSON");
                etcd.run(&["compaction", &put["header"]["revision"].to_string()]);
                compactions += 1;
            }
            compactions
        })
    };
    contend(&etcd, 3, ROUNDS / 4).await;
    is_over.store(true, Ordering::SeqCst);
    let compactions = compacting.join().expect("no panic");
    assert!(compactions > 1, "{compactions}");
}
