//! What a run says of itself, word by word: people read it when nothing moves.

use std::collections::BTreeSet;
use std::time::Duration;

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Event, Notice, Outcome};
use snapshot_prepare::progress::{PhaseName, ReleaseState};
use snapshot_prepare::region::{RegionErrorKind, RegionId, StoreId, StoreState};

use crate::bench::*;
use crate::cluster::*;

const ALL: usize = 1_000;

fn waits(bench: &Bench, limit: usize) -> String {
    bench.machine.waiting_for(limit)
}

#[test]
fn while_the_store_list_is_missing_pd_is_named() {
    let mut bench = Bench::new();
    bench.when(Ask::is_stores, || Act::Fail(FailureKind::Unavailable));
    assert_eq!(waits(&bench, ALL), "the store list of PD");
    bench.run_for(ms(10));
    assert_eq!(
        waits(&bench, ALL),
        "the store list of PD (the store said Unavailable)"
    );
    let error = failed(&bench.run_to_end(), ErrorKind::Unreachable);
    assert_eq!(
        error.message(),
        "no hold within 300s: still waiting for the store list of PD (the store said Unavailable)"
    );
    assert_eq!(error.store_id(), None);
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_list_without_stores_is_told_as_what_pd_said() {
    let mut bench = Bench::new();
    bench.cluster.stores.clear();
    bench.run_for(ms(10));
    assert_eq!(
        waits(&bench, ALL),
        "the store list of PD (PD lists no TiKV store that is in use)"
    );
}

#[test]
fn a_list_that_is_overdue_is_told() {
    let mut bench = Bench::new();
    bench.when(Ask::is_stores, || Act::Never);
    bench.run_for(secs(11));
    assert_eq!(
        waits(&bench, ALL),
        "the store list of PD (PD did not list its stores within 10s)"
    );
}

#[test]
fn stores_that_are_not_listed_are_named_those_with_a_failure_first() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_claims() && ask.at(1), || Act::Never);
    bench.when(
        |ask| ask.is_claims() && ask.at(3),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_for(ms(10));
    assert_eq!(
        waits(&bench, ALL),
        "the listing of 2 of 3 stores: store 3 at store-3:20160 (the store said Unavailable), \
         store 1 at store-1:20160"
    );
    assert_eq!(
        waits(&bench, 1),
        "the listing of 2 of 3 stores: store 3 at store-3:20160 (the store said Unavailable), …"
    );
    bench.run_for(secs(11));
    assert!(
        waits(&bench, ALL).contains(
            "store 1 at store-1:20160 (did not answer the listing of its regions within 10s)"
        ),
        "{}",
        waits(&bench, ALL)
    );
}

#[test]
fn stores_without_a_stream_are_named() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_open() && ask.at(2), || Act::Never);
    bench.run_for(secs(1));
    assert_eq!(
        waits(&bench, ALL),
        "a stream of 1 of 3 stores: store 2 at store-2:20160"
    );
    let progress = bench.machine.progress();
    assert_eq!(progress.phase, PhaseName::Connect);
    assert_eq!((progress.stores, progress.stores_open), (3, 2));
    assert_eq!((progress.stores_leased, progress.regions), (0, Some(6)));
    bench.run_for(secs(10));
    assert_eq!(
        waits(&bench, ALL),
        "a stream of 1 of 3 stores: store 2 at store-2:20160 (could not be dialled within 10s)"
    );
}

#[test]
fn progress_counts_regions_once_all_stores_are_listed() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_claims() && ask.at(2), || Act::Never);
    bench.run_for(ms(10));
    let progress = bench.machine.progress();
    assert_eq!((progress.stores, progress.stores_open), (3, 0));
    assert_eq!(progress.regions, None);
}

#[test]
fn stores_without_a_first_lease_are_named() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_lease() && !ask.at(2), || Act::Never);
    bench.run_to(PhaseName::Suspend);
    bench.run_for(secs(1));
    assert_eq!(
        waits(&bench, ALL),
        "the first lease of 2 of 3 stores: store 1 at store-1:20160, store 3 at store-3:20160"
    );
    assert_eq!(
        waits(&bench, 1),
        "the first lease of 2 of 3 stores: store 1 at store-1:20160, …"
    );
    let progress = bench.machine.progress();
    assert_eq!((progress.stores_open, progress.stores_leased), (3, 1));
}

#[test]
fn while_regions_are_missing_all_that_is_under_way_is_named() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(50));
    let one = "5 of 6 known regions proven, 1 in flight, 0 key ranges being retried";
    assert_eq!(
        waits(&bench, ALL),
        format!("{one}; unanswered: 1 wait (region 101) at store 1")
    );
    assert_eq!(waits(&bench, 0), format!("{one}; unanswered: …"));
}

#[test]
fn ranges_that_failed_are_named_with_their_cause() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::Other),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(10));
    assert_eq!(
        waits(&bench, ALL),
        "5 of 5 known regions proven, 0 in flight, 1 key range being retried; \
         region 101 at store 1: the region said Other (once)"
    );
}

#[test]
fn listings_and_pd_are_named() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    bench.when(Ask::is_scan, || Act::Fail(FailureKind::Unavailable));
    bench.run_to(PhaseName::WaitApply);
    bench.when(|ask| ask.is_claims() && ask.at(2), || Act::Never);
    bench.run_for(secs(7));
    let text = waits(&bench, ALL);
    assert!(
        text.ends_with("; waiting for the listing of store 2; PD: the store said Unavailable"),
        "{text}"
    );
}

#[test]
fn the_error_at_the_deadline_says_where_and_what() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
    let start =
        "no hold within 300s: still waiting in phase wait_apply for 5 of 5 known regions proven";
    assert!(error.message().starts_with(start), "{error}");
    assert!(error.key_range().is_some());
}

/// Lets PD say of region 103 that `leader` leads it, whatever is true.
fn pd_names(bench: &mut Bench, leader: Option<u64>) {
    let mut told = bench.cluster.scan(&range(key(0), None), 100);
    for scanned in &mut told {
        if scanned.region.id.0 == 103 {
            scanned.leader = leader.map(StoreId);
        }
    }
    bench.cluster.pd = Some(told);
}

/// Store 9 takes no part.
#[test]
fn the_error_at_the_deadline_names_an_unclaimed_region_and_whom_pd_names() {
    for leader in [Some(2), Some(9), None] {
        let mut bench = Bench::new();
        bench.cluster.region(103).leader = None;
        pd_names(&mut bench, leader);
        let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
        let whom = leader.map_or("no store".to_owned(), |id| format!("store {id}"));
        let words = format!("; no store claims to lead region 103 (PD names {whom}) (");
        assert!(error.message().contains(&words), "{error}");
        assert_eq!(error.region_id(), Some(RegionId(103)));
        assert_eq!(error.store_id(), leader.map(StoreId));
        assert_eq!(
            error.key_range(),
            Some(&bench.cluster.region(103).region.range)
        );
    }
}

/// Where PD does not help, what a store has claimed does.
#[test]
fn the_error_at_the_deadline_names_a_region_that_was_claimed_once() {
    for knows_region in [true, false] {
        let mut bench = Bench::new();
        bench.when(|ask| ask.is_wait() && ask.about(103), || Act::Never);
        bench.run_to(PhaseName::WaitApply);
        let store = bench.cluster.region(103).leader.expect("led");
        bench.cluster.region(103).leader = None;
        if !knows_region {
            let mut told = bench.cluster.scan(&range(key(0), None), 100);
            told.retain(|scanned| scanned.region.id.0 != 103);
            bench.cluster.pd = Some(told);
        }
        let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
        let words = format!("; no store claims to lead region 103 (store {store} did before) (");
        assert!(error.message().contains(&words), "{error}");
        assert_eq!(error.region_id(), Some(RegionId(103)));
        assert_eq!(error.store_id(), Some(store));
    }
}

/// Of many the first is in the fields, and a few are in the message.
#[test]
fn the_error_at_the_deadline_names_a_few_of_many() {
    let mut bench = Bench::new();
    for id in 102..=106 {
        bench.cluster.region(id).leader = None;
    }
    pd_names(&mut bench, Some(2));
    let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
    let words = "; no store claims to lead region 102 (PD names no store), \
                 region 103 (PD names store 2), region 104 (PD names no store), … (";
    assert!(error.message().contains(words), "{error}");
    assert_eq!(error.region_id(), Some(RegionId(102)));
    assert_eq!(error.store_id(), None);
}

#[test]
fn the_error_after_the_last_attempt_says_how_many_there_were_and_why() {
    // The first lease is overdue after ten seconds, and then there is no time for
    // the backoff.
    let mut bench = Bench::with(3, 6, |config| config.prepare_timeout = ms(10_230));
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    let error = failed(&bench.run_to_end(), ErrorKind::PrepareTimeout);
    assert_eq!(
        error.message(),
        "no hold within 10.23s after 1 attempts; the last one ended because of store 2 at \
         store-2:20160: did not answer its first lease within 10s"
    );
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn the_last_phases_are_named() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    assert_eq!(waits(&bench, ALL), "the end of the hold");
    assert_eq!(bench.machine.progress().regions_confirmed, 6);
    bench.when(|ask| ask.is_finish() && !ask.at(2), || Act::Never);
    bench.tell(Event::FinishRequested);
    bench.run_for(ms(10));
    assert_eq!(
        waits(&bench, ALL),
        "the release of 2 stores: store 1 at store-1:20160, store 3 at store-3:20160"
    );
    assert_eq!(
        waits(&bench, 1),
        "the release of 2 stores: store 1 at store-1:20160"
    );
    assert_eq!(bench.machine.progress().stores, 3);
    bench.run_to_end();
    assert_eq!(waits(&bench, ALL), "nothing: the run is over");
}

#[test]
fn the_report_of_the_hold_has_all_there_is_to_say() {
    let mut bench = Bench::new();
    let slow = |ask: &Ask| ask.is_wait() && ask.about(102);
    bench.when(slow, || Act::After(secs(3)));
    bench.run_to(PhaseName::Suspend);
    let suspended_at = bench.now;
    bench.run_to(PhaseName::Hold);
    let report = bench.machine.prepare_report().expect("held").clone();
    let names: Vec<_> = report
        .stores
        .iter()
        .map(|(id, at)| (id.0, &at[..]))
        .collect();
    assert_eq!(
        names,
        [
            (1, "store-1:20160"),
            (2, "store-2:20160"),
            (3, "store-3:20160")
        ]
    );
    assert_eq!((report.regions, report.attempt), (6, 1));
    assert_eq!(report.proof, "read");
    assert_eq!(report.foreign_leases, []);
    assert_eq!(report.suspended_at, suspended_at);
    assert_eq!(report.held_at, bench.now);
    assert_eq!(report.prepare_time, bench.elapsed());
    assert_eq!(Some(report.valid_until), bench.machine.valid_until());
    assert_eq!(report.slowest_regions.len(), 5, "no more than five");
    let (region, store, took) = report.slowest_regions[0];
    assert_eq!((region, store), (RegionId(102), StoreId(2)));
    assert!(took >= secs(3) && took < ms(3_100), "{took:?}");
    let sorted = report
        .slowest_regions
        .windows(2)
        .all(|it| it[0].2 >= it[1].2);
    assert!(sorted, "{:?}", report.slowest_regions);
    let (store, took) = report.slowest_stores[0];
    assert_eq!(store, StoreId(2));
    assert!(took >= secs(3) && took < ms(3_100), "{took:?}");
    assert_eq!(report.slowest_stores.len(), 3);
    let names: Vec<_> = report.phases.iter().map(|(phase, _)| *phase).collect();
    assert_eq!(
        names,
        [
            PhaseName::Connect,
            PhaseName::Suspend,
            PhaseName::WaitApply,
            PhaseName::Verify
        ]
    );
    let total: Duration = report.phases.iter().map(|(_, took)| *took).sum();
    assert_eq!(total, report.prepare_time, "the phases of the one attempt");
    let suspended = report
        .held_at
        .saturating_duration_since(report.suspended_at);
    assert_eq!(total - report.phases[0].1, suspended);
    let asked = |which: fn(&Ask) -> bool| bench.count(which) as u64;
    let work = report.work;
    assert_eq!(
        (work.waits, work.reads),
        (asked(Ask::is_wait), asked(Ask::is_read))
    );
    assert_eq!(
        (work.listings, work.scans),
        (asked(Ask::is_claims), asked(Ask::is_scan))
    );
    assert!(
        work.waits == 6 && work.reads == 6 && work.listings >= 9,
        "{work:?}"
    );
}

#[test]
fn the_last_report_counts_from_the_first_lease_to_the_last_finish() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    let suspended_at = bench.now;
    bench.run_to(PhaseName::Hold);
    let prepare_time = bench.elapsed();
    bench.run_for(secs(20));
    bench.when(|ask| ask.is_finish() && ask.at(3), || Act::After(secs(2)));
    let asked = bench.now;
    assert_eq!(bench.finish(), Outcome::Finished);
    let report = bench.report();
    assert_eq!(report.prepare_time, Some(prepare_time));
    let suspended = (asked + secs(2)).saturating_duration_since(suspended_at);
    assert_eq!(report.suspended_time, Some(suspended));
    assert_eq!(report.closed_at, bench.now);
    assert!(report.error.is_none());
    let states: Vec<_> = report
        .stores
        .iter()
        .map(|(id, state)| (id.0, *state))
        .collect();
    assert_eq!(states, [1, 2, 3].map(|id| (id, ReleaseState::Released)));
}

#[test]
fn the_configuration_can_be_looked_at() {
    let bench = Bench::with(3, 6, |config| config.window = 7);
    assert_eq!(bench.machine.config().window, 7);
}

/// A store that cannot be dialled makes PD be asked for its list again and again.
#[test]
fn a_store_list_counts_as_progress_only_if_it_brings_something_new() {
    let told_after = |loses_a_store: bool| {
        let mut bench = Bench::new();
        bench.cluster.stores.push(store(9));
        bench.when(|ask| ask.at(9), || Act::Fail(FailureKind::Unavailable));
        bench.run_for(secs(4));
        if loses_a_store {
            bench.cluster.store(3).state = StoreState::Tombstone;
        }
        let told = |bench: &Bench| {
            let mut notices = bench.notices();
            notices.any(|(_, notice)| matches!(notice, Notice::StillWaiting { .. }))
        };
        bench.run_until("it is told", told);
        bench.elapsed()
    };
    let (quiet, moved) = (told_after(false), told_after(true));
    assert!(quiet < secs(12), "{quiet:?}");
    assert!(moved >= secs(14), "{moved:?}");
}

#[test]
fn an_event_is_called_as_it_is_in_code() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.finish();
    let mut names = BTreeSet::new();
    for (_, line) in &bench.log {
        if let Line::In(event) = line {
            let shown = format!("{event:?}");
            assert_eq!(shown.split(' ').next(), Some(event.name()));
            names.insert(event.name());
        }
    }
    assert!(names.len() >= 7, "{names:?}");
}
