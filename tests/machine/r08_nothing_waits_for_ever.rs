//! R8: every question has a deadline, and a late success still counts.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Config, Notice};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::RegionErrorKind;

use crate::bench::*;
use crate::cluster::*;

fn is_wait_101(ask: &Ask) -> bool {
    ask.is_wait() && ask.about(101)
}

/// A run whose wait for region 101 at store 1 is unanswered, all else proven.
fn stuck(window: u32) -> Bench {
    let mut bench = Bench::with(3, 6, |config| config.window = window);
    bench.when(|ask| is_wait_101(ask) && ask.at(1), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.withheld.len(), 1);
    bench
}

/// A run in which store 1 answers none of its waits, too many to be stragglers.
fn stuck_store(change: impl FnOnce(&mut Config)) -> Bench {
    let mut bench = Bench::with(3, 60, change);
    bench.when(|ask| ask.is_wait() && ask.at(1), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.withheld.len(), 20);
    bench
}

/// The last few are looked at before that, less and less often.
#[test]
fn r08_the_looks_at_a_straggler_become_rare() {
    let mut bench = stuck(512);
    bench.run_for(secs(290));
    let looks = bench.times(Ask::is_scan);
    let pauses: Vec<_> = looks
        .windows(2)
        .map(|pair| pair[1].saturating_duration_since(pair[0]))
        .collect();
    assert!(looks.len() < 100, "{}", looks.len());
    assert!(pauses[0] < ms(300), "{pauses:?}");
    assert!(
        pauses[40..].iter().all(|pause| *pause > secs(4)),
        "{pauses:?}"
    );
    assert_eq!(bench.count(is_wait_101), 1, "its wait goes on");
}

#[test]
fn r08_a_straggler_is_asked_at_its_new_leader_long_before_its_deadline() {
    let mut bench = stuck(512);
    bench.cluster.lead(101, 2);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(2), "{:?}", bench.elapsed());
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r08_a_wait_unanswered_for_its_deadline_leads_to_a_new_look() {
    let mut bench = stuck_store(|_| {});
    let sent = bench.times(is_wait_101)[0];
    let mark = bench.mark();
    let count = |bench: &Bench| {
        bench.count_since(mark, |ask| ask.is_scan() || (ask.is_claims() && ask.at(1)))
    };
    bench.run_until("just before", |bench| bench.now >= sent + ms(29_000));
    assert_eq!(count(&bench), 0);
    let until = sent + secs(31);
    bench.run_for(until.saturating_duration_since(bench.now));
    assert!(bench.count_since(mark, |ask| ask.is_claims() && ask.at(1)) >= 1);
    assert!(bench.count_since(mark, Ask::is_scan) >= 1, "PD, too");
    let first = bench
        .asked_since(mark, |ask| ask.is_scan() || ask.is_claims())
        .next()
        .map(|(at, _)| at);
    assert_eq!(first, Some(sent + secs(30)));
}

#[test]
fn r08_the_deadline_is_configured() {
    let mut bench = stuck_store(|config| config.ask_timeout = secs(3));
    let sent = bench.times(is_wait_101)[0];
    bench.run_to_ask("a look", |ask| ask.is_scan() || ask.is_claims());
    assert_eq!(bench.now, sent + secs(3));
}

#[test]
fn r08_another_leader_is_asked_while_the_old_wait_goes_on() {
    let mut bench = stuck(512);
    bench.cluster.lead(101, 2);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(35), "{:?}", bench.elapsed());
    assert_eq!(bench.count(|ask| is_wait_101(ask) && ask.at(2)), 1);
    assert_eq!(bench.count(|ask| is_wait_101(ask) && ask.at(1)), 1);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r08_the_same_leader_is_not_asked_twice_and_the_wait_is_reported() {
    let mut bench = stuck(512);
    bench.run_for(secs(120));
    assert_eq!(bench.count(is_wait_101), 1);
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    let told: Vec<_> = bench
        .notices()
        .filter_map(|(_, notice)| match notice {
            Notice::StillWaiting { summary } => Some(summary.clone()),
            _ => None,
        })
        .collect();
    assert!(!told.is_empty(), "it is reported");
    let sample = told.iter().any(|summary| summary.contains("101"));
    assert!(sample, "with the region: {told:?}");
}

#[test]
fn r08_a_late_success_counts() {
    let mut bench = stuck(512);
    bench.run_for(secs(75));
    let mark = bench.mark();
    bench.release(is_wait_101);
    assert_eq!(
        bench.count_since(mark, |ask| ask.is_read() && ask.about(101)),
        1
    );
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(is_wait_101), 1);
}

#[test]
fn r08_the_look_is_repeated_while_it_is_unanswered() {
    let mut bench = stuck(512);
    bench.run_for(secs(200));
    let mark = bench.mark();
    bench.cluster.lead(101, 3);
    bench.run_to(PhaseName::Hold);
    assert_eq!(
        bench.count_since(mark, |ask| is_wait_101(ask) && ask.at(3)),
        1
    );
}

#[test]
fn r08_the_old_wait_keeps_its_place_in_the_window() {
    let mut bench = Bench::with(3, 6, |config| config.window = 1);
    // Regions 101 and 104 are led by store 1.
    bench.when(
        |ask| ask.is_wait() && ask.at(1) && (ask.about(101) || ask.about(104)),
        || Act::Never,
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.withheld.len(), 1);
    let stuck = bench.withheld[0].region().expect("a region").0;
    let other = if stuck == 101 { 104 } else { 101 };
    bench.cluster.lead(stuck, 2);
    bench.run_for(secs(60));
    assert_eq!(
        bench.count(move |ask| ask.is_wait() && ask.at(2) && ask.about(stuck)),
        1
    );
    assert_eq!(
        bench.count(move |ask| ask.is_wait() && ask.at(1) && ask.about(other)),
        0,
        "the only place is taken until the old wait is answered"
    );
    bench.well_again();
    bench.release(move |ask| ask.about(stuck));
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r08_duplicated_without_a_wait_of_ours_is_an_ordinary_failure() {
    let mut bench = Bench::new();
    bench.first(4, is_wait_101, || Act::Refuse(RegionErrorKind::Duplicated));
    bench.run_to(PhaseName::Hold);
    let times = bench.times(is_wait_101);
    assert_eq!(times.len(), 5);
    for pair in times.windows(2) {
        let pause = pair[1].saturating_duration_since(pair[0]);
        assert!(pause >= ms(50) && pause < secs(3), "{pause:?}");
    }
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r08_a_listing_that_makes_progress_is_not_given_up() {
    let mut bench = Bench::new();
    bench.on({
        let mut first = true;
        move |ask| {
            if !(ask.is_claims() && ask.at(2) && first) {
                return None;
            }
            first = false;
            let claims = Cluster::new(3, 6).claims_of(ask.store()?);
            Some(Act::Say(vec![
                (secs(8), ask.claims(claims[..1].to_vec(), false)),
                (secs(16), ask.claims(claims[1..].to_vec(), false)),
                (secs(24), ask.claims(vec![], true)),
            ]))
        }
    });
    bench.run_to_ask("a stream", |ask| ask.is_open() && ask.at(2));
    assert_eq!(bench.count(|ask| ask.is_claims() && ask.at(2)), 1);
    assert!(bench.elapsed() >= secs(24));
}

#[test]
fn r08_a_listing_that_stops_halfway_is_repeated_ten_seconds_later() {
    let mut bench = Bench::new();
    bench.on({
        let mut first = true;
        move |ask| {
            if !(ask.is_claims() && ask.at(2) && first) {
                return None;
            }
            first = false;
            let claims = Cluster::new(3, 6).claims_of(ask.store()?);
            Some(Act::Say(vec![(secs(5), ask.claims(claims, false))]))
        }
    });
    bench.run_to(PhaseName::Hold);
    let times = bench.times(|ask| ask.is_claims() && ask.at(2));
    let pause = times[1].saturating_duration_since(times[0]);
    assert!(pause >= secs(15) && pause < secs(16), "{pause:?}");
}

#[test]
fn r08_a_scan_that_hangs_is_repeated() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    bench.first(1, Ask::is_scan, || Act::Never);
    bench.run_to_ask("a scan", Ask::is_scan);
    let asked = bench.now;
    bench.cluster.lead(103, 2);
    // The stores' claims must not help: only PD knows for a while.
    bench.run_to_ask("another scan or listing", |ask| {
        ask.is_scan() || ask.is_claims()
    });
    let pause = bench.now.saturating_duration_since(asked);
    assert!(pause <= secs(11), "{pause:?}");
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r08_scans_that_always_hang_or_fail_do_not_stop_the_rest() {
    for hangs in [true, false] {
        let mut bench = Bench::new();
        bench.when(Ask::is_scan, move || {
            if hangs {
                Act::Never
            } else {
                Act::Fail(FailureKind::Unavailable)
            }
        });
        bench.cluster.region(103).leader = None;
        bench.run_to(PhaseName::WaitApply);
        bench.run_for(secs(60));
        assert_eq!(bench.machine.progress().regions_confirmed, 5);
        let scans = bench.count(Ask::is_scan);
        assert!((5..700).contains(&scans), "{scans} scans");
        bench.well_again();
        bench.cluster.lead(103, 1);
        let from = bench.now;
        bench.run_to(PhaseName::Hold);
        let pause = bench.now.saturating_duration_since(from);
        assert!(pause < secs(20), "{pause:?}");
        assert_eq!(bench.attempt(), 1);
    }
}

#[test]
fn r08_a_verify_listing_that_hangs_is_repeated() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.first(1, |ask| ask.is_claims() && ask.at(2), || Act::Never);
    bench.run_to(PhaseName::Verify);
    let from = bench.now;
    bench.run_to(PhaseName::Hold);
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause >= secs(10) && pause < secs(12), "{pause:?}");
}

#[test]
fn r08_the_store_list_of_verify_that_hangs_is_repeated() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.first(1, Ask::is_stores, || Act::Never);
    bench.run_to(PhaseName::Verify);
    let from = bench.now;
    bench.run_to(PhaseName::Hold);
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause >= secs(10) && pause < secs(12), "{pause:?}");
}

#[test]
fn r08_waits_of_one_store_that_are_overdue_together_share_their_look() {
    // 100 regions a store, all unanswered: one listing a store tells all.
    let mut bench = Bench::with(3, 300, |_| {});
    bench.when(Ask::is_wait, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.run_for(secs(45));
    let listings = bench.count_since(mark, Ask::is_claims);
    assert!(listings <= 12, "{listings} listings of 3 stores");
}

#[test]
fn r08_what_a_store_no_longer_claims_is_looked_for_at_once() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101) && ask.at(1),
        || Act::Never,
    );
    // Its refusal leads to a listing of store 1, which led 101 as well.
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.lead(101, 2);
    bench.run_for(secs(1));
    let elsewhere = |ask: &Ask| ask.is_wait() && ask.about(101) && ask.at(2);
    assert_eq!(bench.count(elsewhere), 1);
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r08_a_late_success_counts_also_where_the_region_is_claimed_no_more() {
    let mut bench = stuck(512);
    bench.when(|ask| is_wait_101(ask) && ask.at(2), || Act::Never);
    bench.cluster.lead(101, 2);
    bench.run_for(secs(35));
    assert_eq!(bench.count(|ask| is_wait_101(ask) && ask.at(2)), 1);
    // It is back at store 1, whose old answer comes only now.
    bench.cluster.lead(101, 1);
    let mark = bench.mark();
    bench.release(|ask| is_wait_101(ask) && ask.at(1));
    let read = |ask: &Ask| ask.is_read() && ask.about(101) && ask.at(1);
    assert_eq!(bench.count_since(mark, read), 1);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| is_wait_101(ask) && ask.at(1)), 1);
}

/// By the time a scan is given up all stores have been listed for another range,
/// so nothing more will come that could end its look.
#[test]
fn r08_a_scan_that_hangs_is_given_up_even_if_all_is_listed() {
    // Not ten seconds, at which it is also told what is waited for.
    let mut bench = Bench::with(3, 6, |config| config.call_timeout = secs(7));
    let is_scan_101 =
        |ask: &Ask| matches!(ask, Ask::Scan { range, .. } if range.start().is_empty());
    bench.when(is_scan_101, || Act::Never);
    bench.first(
        2,
        |ask| ask.is_wait() && (ask.about(101) || ask.about(103)),
        || Act::Refuse(RegionErrorKind::NotLeader),
    );
    // PD knows nothing, so that the look for 103 lists all stores.
    bench.cluster.pd = Some(vec![]);
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.region(101).leader = None;
    bench.run_for(secs(6));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    bench.run_for(secs(3));
    // Given up; found nowhere; looked for once more after a backoff.
    let scans = bench.times(is_scan_101);
    assert_eq!(scans.len(), 2);
    let pause = scans[1].saturating_duration_since(scans[0]);
    assert!(pause >= secs(7) && pause <= ms(7_250), "{pause:?}");
    bench.cluster.lead(101, 1);
    bench.run_to(PhaseName::Hold);
}
