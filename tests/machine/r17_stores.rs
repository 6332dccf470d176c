//! R17: which stores take part.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::Outcome;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{Store, StoreState};

use crate::bench::*;
use crate::cluster::*;

/// Returns the stores that are leased when the cluster has this one, too.
fn leased_with(extra: Store) -> Vec<u64> {
    let mut bench = Bench::new();
    bench.cluster.stores.push(extra);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.finish(), Outcome::Finished);
    let report = bench.report();
    report.stores.iter().map(|(id, _)| id.0).collect()
}

#[test]
fn r17_tombstones_and_tiflash_are_left_out() {
    let mut gone = store(9);
    gone.state = StoreState::Tombstone;
    assert_eq!(leased_with(gone), [1, 2, 3]);
    for value in ["tiflash", "TiFlash", "tiflash_compute"] {
        let mut tiflash = store(9);
        tiflash.labels.insert("engine".to_owned(), value.to_owned());
        assert_eq!(leased_with(tiflash), [1, 2, 3], "{value}");
    }
}

#[test]
fn r17_nothing_at_all_is_asked_of_those_left_out() {
    let mut bench = Bench::new();
    let mut tiflash = store(9);
    tiflash
        .labels
        .insert("engine".to_owned(), "tiflash".to_owned());
    bench.cluster.stores.push(tiflash);
    // Its learners do not matter either.
    bench.cluster.region(103).region.peers.push({
        let mut learner = peer(103, 9);
        learner.role = snapshot_prepare::region::PeerRole::Learner;
        learner
    });
    bench.run_to(PhaseName::Hold);
    bench.finish();
    assert_eq!(bench.count(|ask| ask.at(9)), 0);
}

#[test]
fn r17_every_other_store_counts() {
    let mut offline = store(9);
    offline.state = StoreState::Offline;
    assert_eq!(leased_with(offline), [1, 2, 3, 9]);
    // Long without a heartbeat.
    let mut down = store(9);
    down.last_heartbeat_ns = 1;
    assert_eq!(leased_with(down), [1, 2, 3, 9]);
    let mut labeled = store(9);
    labeled
        .labels
        .insert("zone".to_owned(), "tiflash".to_owned());
    assert_eq!(leased_with(labeled), [1, 2, 3, 9]);
    let mut tikv = store(9);
    tikv.labels.insert("engine".to_owned(), "tikv".to_owned());
    assert_eq!(leased_with(tikv), [1, 2, 3, 9]);
}

#[test]
fn r17_a_store_without_regions_is_leased_too() {
    let mut bench = Bench::with(5, 2, |_| {});
    bench.run_to(PhaseName::Hold);
    bench.finish();
    assert_eq!(bench.report().stores.len(), 5);
}

#[test]
fn r17_an_offline_store_is_asked_for_the_regions_it_leads() {
    let mut bench = Bench::new();
    bench.cluster.store(2).state = StoreState::Offline;
    bench.run_to(PhaseName::Hold);
    for id in [102, 105] {
        assert_eq!(
            bench.count(|ask| ask.is_wait() && ask.at(2) && ask.about(id)),
            1
        );
    }
}

#[test]
fn r17_a_store_that_became_a_tombstone_while_it_is_dialed_leaves_the_list() {
    let mut bench = Bench::new();
    bench.cluster.stores.push(store(9));
    bench.when(|ask| ask.at(9), || Act::Fail(FailureKind::Unavailable));
    bench.run_for(secs(30));
    assert_eq!(bench.phase(), PhaseName::Connect);
    bench.cluster.store(9).state = StoreState::Tombstone;
    let from = bench.now;
    bench.run_to(PhaseName::Hold);
    assert!(bench.now.saturating_duration_since(from) < secs(11));
    assert_eq!(bench.attempt(), 1);
    assert_eq!(
        bench.machine.prepare_report().expect("held").stores.len(),
        3
    );
}

#[test]
fn r17_a_store_that_vanished_between_attempts_leaves_the_list() {
    let mut bench = Bench::new();
    bench.cluster.stores.push(store(9));
    bench.run_to(PhaseName::WaitApply);
    let lease = bench
        .last(|ask| ask.is_lease() && ask.at(9))
        .expect("leased");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench.cluster.store(9).state = StoreState::Tombstone;
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(
        bench.machine.prepare_report().expect("held").stores.len(),
        3
    );
}

#[test]
fn r17_a_new_address_is_used_by_the_next_attempt() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.store(2).address = "elsewhere:1".to_owned();
    let lease = bench
        .last(|ask| ask.is_lease() && ask.at(2))
        .expect("leased");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench.run_to(PhaseName::Hold);
    let Some(Ask::Open { store, .. }) = bench.last(|ask| ask.is_open() && ask.at(2)) else {
        panic!("dialed");
    };
    assert_eq!(store.address, "elsewhere:1");
    let Some(Ask::Read { store, .. }) = bench.last(|ask| ask.is_read() && ask.at(2)) else {
        panic!("read");
    };
    assert_eq!(store.address, "elsewhere:1");
}

#[test]
fn r17_a_new_address_is_used_by_the_calls_of_this_attempt_too() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.store(2).address = "elsewhere:1".to_owned();
    // Found by the listing of the stores with which the comparison begins; what
    // is pending then makes it list the regions once more.
    bench.cluster.region(102).pending = true;
    bench.run_to(PhaseName::Verify);
    bench.run_for(ms(10));
    bench.cluster.region(102).pending = false;
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
    for which in [Ask::is_claims, Ask::is_read] {
        match bench.last(|ask| which(ask) && ask.at(2)) {
            Some(Ask::Claims { store, .. } | Ask::Read { store, .. }) => {
                assert_eq!(store.address, "elsewhere:1");
            }
            other => panic!("{other:?}"),
        }
    }
}
