//! Whatever keeps a hold from beginning, the error at the deadline says where it is:
//! in words, and as store, region and key range.

use snapshot_prepare::error::{Error, ErrorKind, FailureKind};
use snapshot_prepare::machine::Proof;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{Peer, PeerId, PeerRole, RegionErrorKind, RegionId, StoreId};

use crate::bench::*;
use crate::cluster::*;

/// Prepares with an obstacle until time is up.
fn late(obstacle: impl FnOnce(&mut Bench)) -> Error {
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = secs(8));
    obstacle(&mut bench);
    failed(&bench.run_to_end(), ErrorKind::PrepareTimeout)
}

fn assert_names(error: &Error, store: Option<u64>, region: Option<u64>, words: &[&str]) {
    assert_eq!(error.store_id(), store.map(StoreId), "{error}");
    assert_eq!(error.region_id(), region.map(RegionId), "{error}");
    for part in words {
        assert!(error.message().contains(part), "no {part:?} in {error}");
    }
}

#[test]
fn a_lease_that_is_not_answered() {
    let error = late(|bench| bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never));
    let words = [
        "the first lease of 1 of 3 stores",
        "store 2 at store-2:20160",
    ];
    assert_names(&error, Some(2), None, &words);
}

#[test]
fn a_wait_that_is_not_answered() {
    let error = late(|bench| bench.when(|ask| ask.is_wait() && ask.about(102), || Act::Never));
    let words = ["unanswered: 1 wait (region 102) at store 2"];
    assert_names(&error, Some(2), Some(102), &words);
    assert!(error.key_range().is_some());
}

#[test]
fn a_read_that_is_not_answered() {
    let error = late(|bench| bench.when(|ask| ask.is_read() && ask.about(102), || Act::Never));
    assert_names(&error, Some(2), Some(102), &["region 102"]);
}

#[test]
fn a_wait_or_a_read_that_is_refused() {
    for is_it in [Ask::is_wait, Ask::is_read] {
        let error = late(|bench| {
            bench.when(
                move |ask| is_it(ask) && ask.about(102),
                || Act::Refuse(RegionErrorKind::Other),
            );
        });
        let words = ["region 102 at store 2: the region said Other ("];
        assert_names(&error, Some(2), Some(102), &words);
    }
}

/// What is asked once more may hang at that very moment; that there was something
/// before is told all the same.
#[test]
fn a_wait_that_is_not_answered_the_second_time() {
    let refused = std::cell::Cell::new(false);
    let error = late(|bench| {
        bench.when(
            |ask| ask.is_wait() && ask.about(102),
            move || {
                if refused.replace(true) {
                    Act::Never
                } else {
                    Act::Refuse(RegionErrorKind::Other)
                }
            },
        );
    });
    let words = [
        "last setback: region 102 at store 2: ",
        "unanswered: 1 wait (region 102) at store 2",
    ];
    assert_names(&error, Some(2), Some(102), &words);
}

#[test]
fn a_change_that_stays_pending() {
    let error = late(|bench| bench.cluster.region(102).pending = true);
    let words = ["region 102 at store 2 has an admin command pending ("];
    assert_names(&error, Some(2), Some(102), &words);
    assert!(!error.message().contains("voter"), "{error}");
}

/// It is told from a pending change, since it takes something else to mend it.
#[test]
fn a_voter_on_a_store_that_is_not_listed() {
    let error = late(|bench| {
        bench.cluster.region(102).region.peers.push(Peer {
            id: PeerId(77),
            store_id: StoreId(9),
            role: PeerRole::Voter,
        });
    });
    let words = ["region 102 at store 2 has a voter on store 9, which is not suspended"];
    assert_names(&error, Some(2), Some(102), &words);
    assert!(!error.message().contains("pending"), "{error}");
}

#[test]
fn keys_that_nobody_leads() {
    let error = late(|bench| bench.cluster.region(102).leader = None);
    let words = ["no store claims to lead region 102 (PD names no store) ("];
    assert_names(&error, None, Some(102), &words);
    assert_eq!(error.key_range(), Some(&range(key(1), Some(key(2)))));
}

/// Where nothing tells which region it is, the keys are counted at least.
#[test]
fn keys_that_nobody_knows() {
    let error = late(|bench| {
        let mut told = bench.cluster.scan(&range(key(0), None), 100);
        told.remove(1);
        bench.cluster.pd = Some(told);
        bench.cluster.region(102).leader = None;
    });
    let words = ["keys [<12 bytes>, <12 bytes>): no store claims to lead it ("];
    assert_names(&error, None, None, &words);
    assert_eq!(error.key_range(), Some(&range(key(1), Some(key(2)))));
}

/// By claims alone PD has to name whoever claims.
#[test]
fn a_claim_that_pd_does_not_agree_with() {
    let mut bench = Bench::with(3, 6, |config| {
        config.prepare_timeout = secs(8);
        config.proof = Proof::Claims;
    });
    let mut told = bench.cluster.scan(&range(key(0), None), 100);
    told[1].leader = Some(StoreId(3));
    bench.cluster.pd = Some(told);
    let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
    let words = ["the stores and PD do not agree on who leads region 102 (PD names store 3)"];
    assert_names(&error, Some(3), Some(102), &words);
}

#[test]
fn a_listing_that_does_not_come() {
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = secs(8));
    bench.run_to(PhaseName::WaitApply);
    bench.when(|ask| ask.is_claims() && ask.at(3), || Act::Never);
    let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
    assert_names(
        &error,
        Some(3),
        None,
        &["waiting for the listing of store 3"],
    );
}

/// A stream for each would take the other's away, and it would look like a rival.
#[test]
fn two_stores_at_one_address() {
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = secs(8));
    bench.cluster.stores[2].address = "store-1:20160".to_owned();
    let error = failed(&bench.run_to_end(), ErrorKind::Unreachable);
    let words = ["PD lists stores 1 and 3 at one address, store-1:20160"];
    assert_names(&error, None, None, &words);
    assert_eq!(bench.count(Ask::is_open), 0);
    // One that is gone keeps its address for ever.
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = secs(8));
    bench.cluster.stores.push(store(4));
    bench.cluster.stores[3].address = "store-1:20160".to_owned();
    bench.cluster.stores[3].state = snapshot_prepare::region::StoreState::Tombstone;
    bench.run_to(PhaseName::Hold);
}

#[test]
fn a_store_that_cannot_be_dialed() {
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = secs(8));
    bench.when(
        |ask| ask.is_open() && ask.at(3),
        || Act::Fail(FailureKind::Unavailable),
    );
    let error = failed(&bench.run_to_end(), ErrorKind::Unreachable);
    assert_names(&error, Some(3), None, &["store 3 at store-3:20160"]);
}
