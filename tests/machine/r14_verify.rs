//! R14: what was proven is compared with what the stores say at the end.

use std::collections::BTreeMap;

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Event, Outcome};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::Key;
use snapshot_prepare::region::{Claim, RegionId, StoreId, StoreState};

use crate::bench::*;
use crate::cluster::*;

/// Runs until all is proven and the stores are being listed once more.
fn verifying(bench: &mut Bench) -> usize {
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.run_to(PhaseName::Verify);
    mark
}

/// Checks what every hold rests on: listings and renewals after the last proof.
fn rests_on_the_last_proof(bench: &Bench) {
    assert_eq!(bench.phase(), PhaseName::Hold);
    let served = |event: &Event| {
        matches!(event, Event::LeaderReadDone { answers, .. }
            if answers.iter().any(|answer| answer.result.is_ok()))
    };
    let proven = *bench.heard(served).last().expect("proven");
    for store in &bench.cluster.stores {
        let last = |which: fn(&Ask) -> bool| {
            *bench
                .times(|ask| which(ask) && ask.store() == Some(store.id))
                .last()
                .expect("asked")
        };
        assert!(last(Ask::is_claims) >= proven, "listed after the proof");
        assert!(last(Ask::is_lease) >= proven, "renewed after the proof");
    }
}

#[test]
fn r14_stores_and_claims_are_listed_again_when_all_is_proven() {
    let mut bench = Bench::new();
    let mark = verifying(&mut bench);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count_since(mark, Ask::is_stores), 1);
    for id in 1..=3 {
        assert_eq!(
            bench.count_since(mark, |ask| ask.is_claims() && ask.at(id)),
            1
        );
    }
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_no_hold_before_every_listing_is_complete() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.when(|ask| ask.is_claims() && ask.at(3), || Act::After(secs(7)));
    bench.run_to(PhaseName::Verify);
    bench.run_for(secs(6));
    assert_eq!(bench.phase(), PhaseName::Verify);
    bench.run_for(secs(2));
    assert_eq!(bench.phase(), PhaseName::Hold);
}

#[test]
fn r14_no_hold_before_the_store_list_is_there() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.when(Ask::is_stores, || Act::After(secs(7)));
    bench.run_to(PhaseName::Verify);
    bench.run_for(secs(6));
    assert_eq!(bench.phase(), PhaseName::Verify);
    bench.run_for(secs(2));
    assert_eq!(bench.phase(), PhaseName::Hold);
}

#[test]
fn r14_no_hold_before_every_store_answered_a_renewal_sent_after_the_last_proof() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_to(PhaseName::Verify);
    bench.run_for(secs(9));
    assert_eq!(bench.phase(), PhaseName::Verify, "all else is there");
    bench.release(|ask| ask.is_lease());
    bench.run_for(ms(5));
    assert_eq!(bench.phase(), PhaseName::Hold);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_the_deciding_renewal_answered_not_valid_is_doubt() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.first(1, |ask| ask.is_lease() && ask.at(2), || Act::Valid(false));
    bench.run_to(PhaseName::Release);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.causes()[0].kind(), ErrorKind::LeaseLost);
}

/// Changes what the stores say in the first listings of the verification.
fn differing(change: impl Fn(StoreId, &mut Vec<Claim>) + 'static) -> Bench {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    let mut listed = BTreeMap::new();
    bench.on(move |ask| {
        let Ask::Claims { store, .. } = ask else {
            return None;
        };
        let times = listed.entry(store.id).or_insert(0);
        *times += 1;
        if *times > 1 {
            return None;
        }
        let mut claims = Cluster::new(3, 6).claims_of(store.id);
        change(store.id, &mut claims);
        Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
    });
    bench
}

/// Region 102 is led by store 2.
fn of_102(claims: &mut [Claim]) -> Option<&mut Claim> {
    claims
        .iter_mut()
        .find(|claim| claim.region.id == RegionId(102))
}

/// Checks that region 102 was proven again, and nothing else than `others`.
fn only_that_is_redone(mut bench: Bench, others: &[u64]) {
    bench.run_to(PhaseName::Hold);
    for id in 101..=106 {
        let waits = bench.count(|ask| ask.is_wait() && ask.about(id));
        let reads = bench.count(|ask| ask.is_read() && ask.about(id));
        if id == 102 {
            assert!(waits >= 2 && reads >= 2, "region {id}: {waits}, {reads}");
        } else if !others.contains(&id) {
            assert_eq!((waits, reads), (1, 1), "region {id}");
        }
    }
    assert_eq!(bench.attempt(), 1, "a difference is no doubt");
    assert!(bench.elapsed() < secs(6), "{:?}", bench.elapsed());
    rests_on_the_last_proof(&bench);
    assert_eq!(bench.finish(), Outcome::Finished);
}

#[test]
fn r14_a_pending_change_is_a_difference() {
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.has_pending_admin = true;
        }
    });
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_a_region_without_a_claim_is_a_difference() {
    let bench = differing(|_, claims| claims.retain(|claim| claim.region.id.0 != 102));
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_two_claims_are_a_difference() {
    let bench = differing(|store, claims| {
        if store == StoreId(3) {
            claims.push(Cluster::new(3, 6).region(102).claim());
        }
    });
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_another_conf_ver_is_a_difference() {
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.region.epoch.conf_ver += 1;
        }
    });
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_another_version_is_a_difference() {
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.region.epoch.version += 1;
        }
    });
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_other_boundaries_are_a_difference() {
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.region.range = range(key(1), Some(Key::new("secret-00001m")));
        }
    });
    only_that_is_redone(bench, &[]);
    // It reaches into region 103, which is then in question, too.
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.region.range = range(key(1), Some(Key::new("secret-00002m")));
        }
    });
    only_that_is_redone(bench, &[103]);
}

#[test]
fn r14_another_region_over_the_same_keys_is_a_difference() {
    let bench = differing(|_, claims| {
        if let Some(claim) = of_102(claims) {
            claim.region.id = RegionId(999);
        }
    });
    only_that_is_redone(bench, &[]);
}

#[test]
fn r14_a_claim_that_covers_proven_regions_uncovers_all_of_them() {
    let bench = differing(|store, claims| {
        if store == StoreId(3) {
            let mut stale = Cluster::new(3, 6).region(103).claim();
            stale.region.id = RegionId(999);
            stale.region.range = range(key(1), Some(key(3)));
            claims.push(stale);
        }
    });
    let mut bench = bench;
    bench.run_to(PhaseName::Hold);
    for id in [102, 103] {
        assert!(bench.count(|ask| ask.is_read() && ask.about(id)) >= 2);
    }
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(101)), 1);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_difference_that_stays_is_never_held() {
    type Change = fn(StoreId, &mut Vec<Claim>);
    let changes: [(&str, Change); 3] = [
        ("pending", |_, claims| {
            if let Some(claim) = of_102(claims) {
                claim.has_pending_admin = true;
            }
        }),
        ("two claims", |store, claims| {
            if store == StoreId(3) {
                claims.push(Cluster::new(3, 6).region(102).claim());
            }
        }),
        ("an old claim over two regions", |store, claims| {
            if store == StoreId(3) {
                let mut stale = Cluster::new(3, 6).region(103).claim();
                stale.region.id = RegionId(999);
                stale.region.epoch.version = 3;
                stale.region.range = range(key(1), Some(key(3)));
                claims.push(stale);
            }
        }),
    ];
    for (what, change) in changes {
        let mut bench = Bench::new();
        bench.run_to(PhaseName::WaitApply);
        bench.on(move |ask| {
            let Ask::Claims { store, .. } = ask else {
                return None;
            };
            let mut claims = Cluster::new(3, 6).claims_of(store.id);
            change(store.id, &mut claims);
            Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
        });
        let outcome = bench.run_to_end();
        failed(&outcome, ErrorKind::PrepareTimeout);
        let listings = bench.count(Ask::is_claims);
        assert!(listings < 5_000, "{what}: {listings} listings");
        assert!(bench.count(|ask| ask.is_wait() && ask.about(105)) <= 2);
    }
}

#[test]
fn r14_a_merge_that_ends_under_the_lease_converges() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.run_until("102 and 103 are proven", |bench| {
        bench.machine.progress().regions_confirmed == 6
    });
    bench.cluster.merge_into_left(103);
    bench.run_to(PhaseName::Hold);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.regions, 5);
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(102)), 2);
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(105)), 1);
    assert_eq!(bench.attempt(), 1);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_listing_begun_before_the_proof_does_not_verify_it() {
    // Store 2's listing is slow; meanwhile store 3 tells of a difference in its
    // own region 103, which is proven again before store 2 is heard. What store
    // 2 said before that says nothing of region 103 after it.
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.first(
        1,
        |ask| ask.is_claims() && ask.at(2),
        || Act::After(secs(9)),
    );
    bench.on({
        let mut first = true;
        move |ask| {
            if !(ask.is_claims() && ask.at(3) && first) {
                return None;
            }
            first = false;
            let mut claims = Cluster::new(3, 6).claims_of(StoreId(3));
            claims[0].has_pending_admin = true;
            Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
        }
    });
    bench.run_to(PhaseName::Verify);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(103)), 2);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_new_store_means_a_new_attempt() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.stores.push(store(4));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.count(|ask| ask.is_lease() && ask.at(4)), 2);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.stores.len(), 4);
}

#[test]
fn r14_a_new_store_that_takes_no_part_is_no_reason() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    let mut tiflash = store(4);
    tiflash
        .labels
        .insert("engine".to_owned(), "tiflash".to_owned());
    let mut gone = store(5);
    gone.state = StoreState::Tombstone;
    bench.cluster.stores.extend([tiflash, gone]);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
    assert_eq!(
        bench.machine.prepare_report().expect("held").stores.len(),
        3
    );
}

/// Region 101 moves to store 2, which claims it for the first time while all is
/// compared, and not as it was proven.
fn moved_while_verifying(change: impl Fn(&mut Truth)) -> Bench {
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_read() && ask.about(106), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(500));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    bench.cluster.lead(101, 2);
    change(bench.cluster.region(101));
    bench.release(|ask| ask.about(106));
    bench
}

#[test]
fn r14_a_new_leader_with_an_admin_command_pending_is_a_difference() {
    let mut bench = moved_while_verifying(|truth| truth.pending = true);
    bench.run_for(secs(60));
    assert_eq!(bench.phase(), PhaseName::Verify);
    bench.cluster.region(101).pending = false;
    bench.run_to(PhaseName::Hold);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_new_leader_with_a_voter_on_an_unlisted_store_is_a_difference() {
    let mut bench = moved_while_verifying(|truth| truth.region.peers.push(peer(101, 9)));
    bench.run_for(secs(60));
    assert_eq!(bench.phase(), PhaseName::Verify);
    bench.cluster.region(101).region.peers.pop();
    bench.run_to(PhaseName::Hold);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_new_leader_with_another_epoch_is_a_difference() {
    let mut bench = moved_while_verifying(|truth| truth.region.epoch.conf_ver += 1);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(101)), 2);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_new_leader_with_nothing_pending_is_none() {
    let mut bench = moved_while_verifying(|_| {});
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(101)), 1);
    rests_on_the_last_proof(&bench);
}

#[test]
fn r14_a_store_list_that_fails_is_repeated_after_its_backoff() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.first(1, Ask::is_stores, || Act::Fail(FailureKind::Unavailable));
    bench.run_to(PhaseName::Verify);
    let from = bench.now;
    bench.run_to(PhaseName::Hold);
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause >= ms(50) && pause < secs(1), "{pause:?}");
}

/// A second claimer is still being read from when all is proven: its refusal
/// would end its claim.
#[test]
fn r14_the_comparison_waits_for_the_reads_in_flight() {
    let mut bench = Bench::new();
    bench.on(|ask| {
        if !(ask.is_claims() && ask.at(2)) {
            return None;
        }
        let mut all = Cluster::new(3, 6);
        let mut claims = all.claims_of(StoreId(2));
        claims.push(all.region(101).claim());
        Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
    });
    bench.when(
        |ask| ask.is_read() && ask.about(101) && ask.at(2),
        || Act::Never,
    );
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.run_to(PhaseName::Verify);
    bench.run_for(ms(500));
    assert_eq!(bench.count_since(mark, Ask::is_claims), 0);
    bench.well_again();
    bench.release(Ask::is_read);
    bench.run_to(PhaseName::Hold);
}
