//! R13: a confirmation is proof only with a read that the same store serves
//! after it.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Event, Proof};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

fn is_wait_101(ask: &Ask) -> bool {
    ask.is_wait() && ask.about(101)
}

fn is_read_101(ask: &Ask) -> bool {
    ask.is_read() && ask.about(101)
}

#[test]
fn r13_the_read_follows_the_confirmed_wait_to_the_claiming_peer() {
    let mut bench = Bench::new();
    bench.when(is_wait_101, || Act::After(secs(2)));
    bench.run_to(PhaseName::WaitApply);
    let waited = bench.times(is_wait_101)[0];
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.times(is_read_101), [waited + secs(2)]);
    let Some(Ask::Read { store, target, .. }) = bench.last(is_read_101) else {
        panic!("read");
    };
    assert_eq!(store.id, StoreId(1));
    assert_eq!(target.peer_id.0, 1011);
    assert_eq!(target.epoch, bench.cluster.region(101).region.epoch);
    assert_eq!(bench.machine.prepare_report().expect("held").proof, "read");
}

#[test]
fn r13_every_region_is_read() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    for id in 101..=106 {
        assert_eq!(bench.count(|ask| ask.is_read() && ask.about(id)), 1);
    }
}

#[test]
fn r13_a_confirmation_without_its_read_is_no_proof() {
    let mut bench = Bench::new();
    bench.when(is_read_101, || Act::Refuse(RegionErrorKind::NotLeader));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    bench.well_again();
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r13_a_refused_read_means_to_wait_and_read_again() {
    let mut bench = Bench::new();
    bench.first(1, is_read_101, || {
        Act::Refuse(RegionErrorKind::StaleCommand)
    });
    bench.run_to(PhaseName::Hold);
    let (waits, reads) = (bench.times(is_wait_101), bench.times(is_read_101));
    assert_eq!((waits.len(), reads.len()), (2, 2));
    assert!(waits[1] >= reads[0] + ms(50), "after a backoff");
    assert!(reads[1] > waits[1]);
}

#[test]
fn r13_a_read_unanswered_for_5_s_counts_as_refused() {
    let mut bench = Bench::new();
    bench.first(1, is_read_101, || Act::Never);
    bench.run_to(PhaseName::Hold);
    let (waits, reads) = (bench.times(is_wait_101), bench.times(is_read_101));
    assert_eq!((waits.len(), reads.len()), (2, 2));
    let pause = waits[1].saturating_duration_since(reads[0]);
    assert!(pause >= secs(5) && pause < secs(6), "{pause:?}");
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r13_the_deadline_of_a_read_is_configured() {
    let mut bench = Bench::with(3, 6, |config| config.read_timeout = ms(700));
    bench.first(1, is_read_101, || Act::Never);
    bench.run_to(PhaseName::Hold);
    let (waits, reads) = (bench.times(is_wait_101), bench.times(is_read_101));
    let pause = waits[1].saturating_duration_since(reads[0]);
    assert!(pause >= ms(700) && pause < ms(1_500), "{pause:?}");
}

#[test]
fn r13_an_idle_leader_without_a_quorum_proves_nothing() {
    // It claims, it confirms, it never serves a read; and PD names another.
    let mut bench = Bench::new();
    let mut told = bench.cluster.scan(&range(key(0), None), 100);
    told[0].leader = Some(StoreId(2));
    bench.cluster.pd = Some(told);
    bench.when(|ask| is_read_101(ask) && ask.at(1), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(200));
    assert_ne!(bench.phase(), PhaseName::Hold);
    // The real leader was there all along, now the old one has seen it, too.
    bench.cluster.lead(101, 2);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| is_read_101(ask) && ask.at(2)), 1);
}

#[test]
fn r13_the_leader_moves_between_the_wait_and_the_read() {
    let mut bench = Bench::new();
    bench.when(is_wait_101, || Act::After(secs(1)));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(500));
    bench.cluster.lead(101, 3);
    bench.run_to(PhaseName::Hold);
    assert!(bench.count(|ask| is_wait_101(ask) && ask.at(3)) >= 1);
    assert_eq!(bench.count(|ask| is_read_101(ask) && ask.at(3)), 1);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r13_a_failed_read_call_is_repeated_for_what_it_had_not_answered() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && (ask.about(101) || ask.about(104)),
        || Act::Never,
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(500));
    bench.well_again();
    // Both waits are answered in one batch, so both reads are one call.
    let mut answers = vec![];
    let mut on = None;
    for ask in std::mem::take(&mut bench.withheld) {
        if let Event::WaitApplyDone { stream, answers: a } = ask.result(Ok(())) {
            on = Some(stream);
            answers.extend(a);
        }
    }
    assert_eq!(answers.len(), 2);
    bench.when(Ask::is_read, || Act::Never);
    bench.tell(Event::WaitApplyDone {
        stream: on.expect("a stream"),
        answers,
    });
    let reads = std::mem::take(&mut bench.withheld);
    assert_eq!(reads.len(), 2);
    bench.well_again();
    bench.tell(reads[0].result(Ok(())));
    bench.tell(reads[1].failed(failure(FailureKind::Transport)));
    bench.run_to(PhaseName::Hold);
    let again = reads[1].region().expect("a region").0;
    for id in [101, 104] {
        let reads = bench.count(|ask| ask.is_read() && ask.about(id));
        assert_eq!(reads, if id == again { 2 } else { 1 });
    }
    assert_eq!(bench.attempt(), 1);
}

fn by_claims(change: impl FnOnce(&mut Cluster)) -> Bench {
    let mut bench = Bench::with(3, 6, |config| config.proof = Proof::Claims);
    change(&mut bench.cluster);
    bench
}

#[test]
fn r13_claims_instead_of_reads_are_said_in_the_report() {
    let mut bench = by_claims(|_| {});
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(Ask::is_read), 0);
    assert!(bench.count(Ask::is_scan) >= 1, "PD has to name the leader");
    assert_eq!(
        bench.machine.prepare_report().expect("held").proof,
        "claims"
    );
}

#[test]
fn r13_claims_need_a_listing_after_all_leases_and_before_the_wait() {
    let mut bench = by_claims(|_| {});
    bench.run_to(PhaseName::Suspend);
    let mark = bench.mark();
    bench.run_to(PhaseName::Hold);
    let leased = bench.heard(|event| matches!(event, Event::LeaseUpdated { .. }))[2];
    let first_wait = bench.times(Ask::is_wait)[0];
    for id in 1..=3 {
        let listed = bench
            .asked_since(mark, |ask| ask.is_claims() && ask.at(id))
            .next()
            .map(|(at, _)| at)
            .expect("listed");
        assert!(listed >= leased && listed < first_wait, "store {id}");
    }
}

#[test]
fn r13_claims_with_another_leader_in_pd_are_no_proof() {
    let mut bench = by_claims(|cluster| {
        let mut told = cluster.scan(&range(key(0), None), 100);
        told[0].leader = Some(StoreId(2));
        cluster.pd = Some(told);
    });
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_ne!(bench.phase(), PhaseName::Hold);
    bench.cluster.pd = None;
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r13_claims_that_pd_knows_nothing_of_are_no_proof() {
    let mut bench = by_claims(|cluster| {
        let mut told = cluster.scan(&range(key(0), None), 100);
        told.remove(0);
        cluster.pd = Some(told);
    });
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_ne!(bench.phase(), PhaseName::Hold);
    bench.cluster.pd = None;
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r13_two_claimers_before_are_no_proof_by_claims() {
    let mut bench = by_claims(|_| {});
    bench.on(|ask| {
        if !(ask.is_claims() && ask.at(3)) {
            return None;
        }
        let mut all = Cluster::new(3, 6);
        let mut claims = all.claims_of(StoreId(3));
        claims.push(all.region(101).claim());
        Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
    });
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_ne!(bench.phase(), PhaseName::Hold);
    assert_eq!(bench.count(is_wait_101), 0, "not even asked for");
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r13_a_claim_with_something_pending_is_no_proof_by_claims() {
    let mut bench = by_claims(|cluster| cluster.region(101).pending = true);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_ne!(bench.phase(), PhaseName::Hold);
    assert_eq!(bench.count(is_wait_101), 0, "not even asked for");
    bench.cluster.region(101).pending = false;
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r13_claims_are_looked_at_as_soon_as_all_are_leased() {
    let mut bench = Bench::with(3, 6, |config| config.proof = Proof::Claims);
    bench.run_to(PhaseName::WaitApply);
    let from = bench.now;
    bench.run_to_ask("a wait", Ask::is_wait);
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause < ms(20), "{pause:?}");
}
