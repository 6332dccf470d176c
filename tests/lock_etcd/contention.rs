//! Many contenders, many rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};

use crate::contest::{ROUNDS, contest};
use crate::server::Etcd;
use crate::support::{assert_clean, config_with, soon};

/// Lets so many contend until there were so many rounds.
async fn contend(etcd: &Etcd, contenders: usize, rounds: usize) {
    let contender = |config| {
        let target = EtcdConfig::new(&etcd.endpoints, "backup").expect("well formed");
        Box::new(EtcdLock::new(target, config).expect("the settings can work")) as _
    };
    let (config, rest) = (config_with(|_| {}), Duration::from_millis(50));
    let fought = contest(contender, &config, contenders, rounds, rest);
    soon("the end of the contest", fought).await;
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
