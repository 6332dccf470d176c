//! R11: a range for which nobody is known to ask is a failed attempt.

use snapshot_prepare::error::ErrorKind;
use snapshot_prepare::machine::Event;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::Key;
use snapshot_prepare::region::{Peer, PeerId, PeerRole, RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r11_a_range_that_nobody_claims_is_asked_of_pd() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    let scan = bench.run_to_ask("PD is asked", Ask::is_scan);
    let Ask::Scan { range, limit, .. } = scan else {
        panic!("a scan");
    };
    assert!(range.overlaps(&bench.cluster.region(103).region.range));
    assert!(limit >= 1);
    bench.run_for(secs(30));
    assert_eq!(bench.phase(), PhaseName::WaitApply, "never held with a gap");
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    let scans = bench.count_since(mark, Ask::is_scan);
    assert!((4..60).contains(&scans), "with backoff: {scans}");
    bench.cluster.lead(103, 2);
    let from = bench.now;
    bench.run_to(PhaseName::Hold);
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause < secs(6), "{pause:?}");
}

#[test]
fn r11_the_store_that_pd_names_is_listed_again() {
    let mut bench = Bench::new();
    // Store 2 forgets region 105 until all leases are in force.
    bench.on({
        let mut left = 2;
        move |ask| {
            if !(ask.is_claims() && ask.at(2) && left > 0) {
                return None;
            }
            left -= 1;
            let mut claims = Cluster::new(3, 6).claims_of(StoreId(2));
            claims.retain(|claim| claim.region.id.0 != 105);
            Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
        }
    });
    bench.run_to(PhaseName::Suspend);
    bench.run_to_ask("PD is asked", Ask::is_scan);
    let mark = bench.mark();
    bench.run_to_ask("a wait", |ask| ask.is_wait() && ask.about(105));
    let listed: Vec<_> = bench
        .asked_since(mark, Ask::is_claims)
        .filter_map(|(_, ask)| ask.store())
        .collect();
    assert_eq!(listed, [StoreId(2)], "only the one that PD names");
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r11_all_stores_are_listed_when_pd_does_not_know() {
    for nothing in [true, false] {
        let mut bench = Bench::new();
        bench.cluster.region(103).leader = None;
        if nothing {
            // PD has a gap there.
            let mut told = bench.cluster.scan(&range(key(0), None), 100);
            told.retain(|scanned| scanned.region.id.0 != 103);
            bench.cluster.pd = Some(told);
        }
        bench.run_to(PhaseName::WaitApply);
        bench.run_to_ask("PD is asked", Ask::is_scan);
        let mark = bench.mark();
        bench.run_for(ms(50));
        let mut listed: Vec<_> = bench
            .asked_since(mark, Ask::is_claims)
            .filter_map(|(_, ask)| ask.store())
            .collect();
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed, [StoreId(1), StoreId(2), StoreId(3)], "{nothing}");
    }
}

#[test]
fn r11_pd_that_names_the_wrong_store_does_not_stop_the_run() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    // PD says store 1, in truth it will be store 2.
    let mut told = bench.cluster.scan(&range(key(0), None), 100);
    for scanned in &mut told {
        if scanned.region.id.0 == 103 {
            scanned.leader = Some(StoreId(1));
        }
    }
    bench.cluster.pd = Some(told);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(3));
    bench.cluster.lead(103, 2);
    bench.run_for(secs(120));
    assert_eq!(bench.phase(), PhaseName::Hold);
}

#[test]
fn r11_pd_that_knows_nothing_at_all_does_not_stop_a_good_run() {
    let mut bench = Bench::new();
    bench.cluster.pd = Some(vec![]);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(1));
}

#[test]
fn r11_a_leader_on_store_zero_is_no_target() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = Some(StoreId(0));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(20));
    assert_eq!(bench.count(|ask| ask.at(0)), 0);
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    bench.cluster.lead(103, 3);
    bench.run_to(PhaseName::Hold);
}

/// Adds a peer on the unlisted store 9 to region 102.
fn with_unlisted_peer(role: PeerRole) -> Bench {
    let mut bench = Bench::new();
    bench.cluster.region(102).region.peers.push(Peer {
        id: PeerId(1029),
        store_id: StoreId(9),
        role,
    });
    bench
}

#[test]
fn r11_a_voter_on_an_unlisted_store_leads_to_a_new_store_list() {
    for role in [
        PeerRole::Voter,
        PeerRole::IncomingVoter,
        PeerRole::DemotingVoter,
    ] {
        let mut bench = with_unlisted_peer(role);
        bench.run_for(secs(20));
        assert_ne!(bench.phase(), PhaseName::Hold, "{role:?}");
        assert!(bench.count(Ask::is_stores) >= 2, "{role:?}");
        assert!(bench.count(Ask::is_stores) < 200, "with backoff");
        bench.cluster.stores.push(store(9));
        bench.run_to(PhaseName::Hold);
        let report = bench.machine.prepare_report().expect("held");
        assert_eq!(report.stores.len(), 4, "{role:?}");
    }
}

#[test]
fn r11_a_learner_on_an_unlisted_store_is_no_reason() {
    let mut bench = with_unlisted_peer(PeerRole::Learner);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(1));
    assert_eq!(
        bench.count(Ask::is_stores),
        2,
        "one to connect, one to verify"
    );
}

/// From now on the listing of store 2 has a region without a peer on it.
fn put_another_store_behind_2(bench: &mut Bench) {
    bench.on(|ask| {
        if !(ask.is_claims() && ask.at(2)) {
            return None;
        }
        let mut claims = Cluster::new(3, 6).claims_of(StoreId(2));
        claims[0].region.peers.retain(|peer| peer.store_id.0 != 2);
        Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
    });
}

#[test]
fn r11_a_claim_without_a_peer_there_is_a_wrong_store_behind_the_address() {
    let mut bench = Bench::new();
    put_another_store_behind_2(&mut bench);
    let error = failed(&bench.run_to_end(), ErrorKind::WrongService);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert!(error.to_string().contains("store-2:20160"), "{error}");
    assert_eq!(bench.count(Ask::is_lease), 0);
}

#[test]
fn r11_a_wrong_store_behind_the_address_is_seen_later_too() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    put_another_store_behind_2(&mut bench);
    let error = failed(&bench.run_to_end(), ErrorKind::WrongService);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert_eq!(bench.count(Ask::is_finish), 3);
}

#[test]
fn r11_no_claims_at_all_is_one_big_gap() {
    let mut bench = Bench::new();
    for id in 101..=106 {
        bench.cluster.region(id).leader = None;
    }
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(10));
    assert!(bench.count(Ask::is_scan) >= 1);
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    for id in 101..=106 {
        bench.cluster.lead(id, 1);
    }
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r11_a_gap_larger_than_a_page_is_scanned_to_its_end() {
    let mut bench = Bench::with(3, 12, |config| config.page_size = 2);
    for id in 101..=112 {
        bench.cluster.region(id).leader = None;
    }
    bench.run_to(PhaseName::WaitApply);
    bench.run_to_ask("PD is asked", Ask::is_scan);
    for id in 101..=112 {
        bench.cluster.lead(id, id % 3 + 1);
    }
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 12);
}

/// Store 2 forgets all but its first region, and PD says one region at a time.
#[test]
fn r11_what_is_behind_a_full_page_is_looked_at_on_its_own() {
    let mut bench = Bench::with(2, 8, |config| config.page_size = 1);
    for region in 103..=106 {
        bench.cluster.lead(region, 2);
    }
    bench.on({
        let mut left = 2;
        move |ask| {
            if !(ask.is_claims() && ask.at(2) && left > 0) {
                return None;
            }
            left -= 1;
            Some(Act::Say(vec![(ms(1), ask.claims(vec![], true))]))
        }
    });
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.run_to(PhaseName::Verify);
    let scanned: Vec<_> = bench
        .asked_since(mark, Ask::is_scan)
        .filter_map(|(_, ask)| match ask {
            Ask::Scan { range, .. } => Some(range.start().clone()),
            _ => None,
        })
        .collect();
    for index in [2, 3, 4, 5] {
        assert!(scanned.contains(&key(index)), "{index}: {scanned:?}");
    }
    let of_others = bench.count_since(mark, |ask| ask.is_claims() && ask.at(1));
    assert_eq!(
        of_others, 1,
        "PD named all leaders; the rest is the comparison"
    );
}

#[test]
fn r11_what_a_region_has_lost_to_another_store_is_looked_for() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101) && ask.at(1),
        || Act::Never,
    );
    // Its refusal leads to a listing of store 1, which leads 101 as well.
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.split(101, Key::from(b"b"), 107);
    bench.cluster.lead(107, 2);
    bench.run_for(secs(1));
    let right = |ask: &Ask| ask.is_wait() && ask.about(107) && ask.at(2);
    assert_eq!(bench.count(right), 1);
    bench.well_again();
    bench.release(|ask| ask.about(101));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r11_a_store_that_is_known_only_by_its_voter_is_listed_before_any_stream_opens() {
    let mut bench = Bench::new();
    let early = bench.cluster.stores.clone();
    bench.cluster.stores.push(store(9));
    bench.cluster.region(103).region.peers.push(peer(103, 9));
    let mut lists = 0;
    bench.on(move |ask| {
        let Ask::Stores { request } = ask else {
            return None;
        };
        lists += 1;
        (lists == 1).then(|| {
            let listed = Event::StoresListed {
                request: *request,
                stores: early.clone(),
            };
            Act::Say(vec![(ms(1), listed)])
        })
    });
    bench.run_to_ask("a stream", Ask::is_open);
    assert_eq!(bench.count(Ask::is_stores), 2);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(9)), 1);
}

#[test]
fn r11_a_voter_on_an_unlisted_store_is_seen_while_waiting_too() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.region(104).region.peers.push(peer(104, 9));
    bench.cluster.stores.push(store(9));
    bench.run_until("another attempt", |bench| bench.attempt() == 2);
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.stores.len(), 4);
}

#[test]
fn r11_of_a_region_that_one_listing_names_twice_the_last_word_counts() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.on(|ask| {
        let Ask::Claims { store, .. } = ask else {
            return None;
        };
        let claims = Cluster::new(3, 6).claims_of(store.id);
        let mut otherwise = claims.clone();
        for claim in &mut otherwise {
            claim.region.epoch.version += 1;
        }
        // First what is not so, then all as it was.
        let all = [otherwise, claims].concat();
        Some(Act::Say(vec![(ms(1), ask.claims(all, true))]))
    });
    bench.run_for(secs(5));
    let waits = |id: u64| bench.count(move |ask| ask.is_wait() && ask.about(id));
    assert_eq!((waits(101), waits(104)), (1, 2));
    bench.release(|ask| ask.about(101));
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r11_the_word_of_pd_is_enough_twice() {
    let mut bench = Bench::new();
    bench.first(
        3,
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    let listed = |bench: &Bench, id: u64| {
        bench.count_since(mark, move |ask: &Ask| ask.is_claims() && ask.at(id))
    };
    for others in [0, 0, 1] {
        bench.run_to_ask("a look", Ask::is_scan);
        bench.run_to_ask("a wait", |ask| ask.is_wait() && ask.about(101));
        assert_eq!((listed(&bench, 2), listed(&bench, 3)), (others, others));
    }
    assert_eq!(listed(&bench, 1), 3);
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r11_a_page_that_is_not_full_is_all_that_pd_knows() {
    let mut bench = Bench::new();
    for id in 101..=106 {
        bench.cluster.region(id).leader = None;
    }
    let mut told = bench.cluster.scan(&range(key(0), None), 100);
    told.truncate(3);
    bench.cluster.pd = Some(told);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(2));
    assert_eq!(bench.count(Ask::is_scan), 1);
}

#[test]
fn r11_one_listing_with_such_a_voter_leads_to_one_store_list() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.region(104).region.peers.push(peer(104, 9));
    let mark = bench.mark();
    // Before the first look at the straggler.
    bench.run_for(ms(45));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    assert_eq!(bench.count_since(mark, Ask::is_claims), 1);
    assert_eq!(bench.count_since(mark, Ask::is_stores), 1);
}

/// The listing that goes with the leases counts when it is complete, not before.
#[test]
fn r11_a_listing_in_parts_while_the_leases_are_given_out_hides_no_region() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    let claims = bench.cluster.claims_of(StoreId(2));
    let Some(ask) = bench.last(|ask| ask.is_claims() && ask.at(2)) else {
        panic!("listed");
    };
    bench.tell(ask.claims(claims[..1].to_vec(), false));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(Ask::is_scan), 0);
    assert_eq!(bench.count(Ask::is_wait), 6);
}
