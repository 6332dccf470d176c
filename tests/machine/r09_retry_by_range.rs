//! R9: retries by key range, each with a backoff of its own, within a budget of
//! time.

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::Key;
use snapshot_prepare::region::{RegionErrorKind, RegionId, StoreId};
use snapshot_prepare::time::Timestamp;

use crate::bench::*;
use crate::cluster::*;

fn is_wait_101(ask: &Ask) -> bool {
    ask.is_wait() && ask.about(101)
}

fn refused(seed: u64) -> Vec<Timestamp> {
    let mut bench = Bench::with(3, 6, |config| config.seed = seed);
    bench.when(is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(60));
    bench.times(is_wait_101)
}

#[test]
fn r09_the_backoff_grows_from_100_ms_to_5_s() {
    let times = refused(0);
    let pauses: Vec<_> = times
        .windows(2)
        .map(|pair| pair[1].saturating_duration_since(pair[0]))
        .collect();
    assert!(pauses[0] >= ms(50) && pauses[0] <= ms(160), "{pauses:?}");
    for pause in &pauses {
        assert!(*pause <= ms(5_050), "{pauses:?}");
    }
    let late = &pauses[20..];
    assert!(late.iter().all(|pause| *pause >= secs(2)), "{pauses:?}");
    assert!(pauses[6] > pauses[0], "{pauses:?}");
}

/// Where the cluster is changing, pauses begin in milliseconds.
#[test]
fn r09_short_pauses_grow_to_5_s_as_well() {
    let mut bench = Bench::new();
    bench.when(is_wait_101, || Act::Refuse(RegionErrorKind::NotReady));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(120));
    let times = bench.times(is_wait_101);
    let pauses: Vec<_> = times
        .windows(2)
        .map(|pair| pair[1].saturating_duration_since(pair[0]))
        .collect();
    assert!(pauses[0] < ms(10), "{pauses:?}");
    assert!(
        pauses[35..].iter().all(|pause| *pause >= secs(2)),
        "{pauses:?}"
    );
    assert!(pauses.iter().all(|pause| *pause <= ms(5_050)), "{pauses:?}");
}

/// What follows short pauses is no longer than if they had all been ordinary.
#[test]
fn r09_a_short_pause_does_not_lengthen_an_ordinary_one() {
    let mut bench = Bench::new();
    bench.first(1, is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.first(10, is_wait_101, || Act::Refuse(RegionErrorKind::NotReady));
    bench.run_to(PhaseName::Hold);
    let times = bench.times(is_wait_101);
    assert_eq!(times.len(), 12);
    let pause = times[11].saturating_duration_since(times[10]);
    assert!(pause >= ms(50) && pause < ms(160), "{pause:?}");
}

#[test]
fn r09_the_jitter_comes_from_the_seed() {
    assert_eq!(refused(7), refused(7));
    assert_ne!(refused(7), refused(8));
}

#[test]
fn r09_a_retry_is_not_put_off_by_other_failures() {
    let mut bench = Bench::with(3, 18, |config| {
        config.window = 4;
        // All backoffs are of one length, so that failures never pause.
        config.backoff_max = ms(100);
    });
    bench.first(1, is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.when(
        |ask| ask.is_wait() && !ask.about(101),
        || Act::Refuse(RegionErrorKind::Other),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    let times = bench.times(is_wait_101);
    assert_eq!(times.len(), 2);
    let pause = times[1].saturating_duration_since(times[0]);
    assert!(pause <= ms(250), "{pause:?}");
}

#[test]
fn r09_everything_else_goes_on_meanwhile() {
    let mut bench = Bench::with(3, 60, |config| config.window = 2);
    bench.when(is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.machine.progress().regions_confirmed, 59);
    assert!(bench.machine.progress().retrying >= 1 || bench.machine.progress().in_flight >= 1);
}

#[test]
fn r09_progress_resets_the_backoff() {
    let mut bench = Bench::new();
    bench.first(16, is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.run_to(PhaseName::Verify);
    bench.cluster.region(101).region.epoch.conf_ver += 1;
    bench.first(1, is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.run_to(PhaseName::Hold);
    let times = bench.times(is_wait_101);
    assert_eq!(times.len(), 19);
    let before = times[16].saturating_duration_since(times[15]);
    let after = times[18].saturating_duration_since(times[17]);
    assert!(before > secs(1), "{before:?}");
    assert!(after <= ms(160), "{after:?} after {before:?}");
}

#[test]
fn r09_the_budget_is_time_not_rounds() {
    let mut bench = Bench::with(3, 6, |config| config.backoff_max = ms(500));
    bench.when(is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(290));
    assert!(bench.count(is_wait_101) > 400);
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r09_the_deadline_says_what_was_outstanding() {
    let mut bench = Bench::new();
    bench.when(is_wait_101, || Act::Refuse(RegionErrorKind::Other));
    let outcome = bench.run_to_end();
    let error = failed(&outcome, ErrorKind::PrepareTimeout);
    let text = error.to_string();
    assert!(text.contains("101"), "the region: {text}");
    assert_eq!(error.region_id(), Some(RegionId(101)));
    assert_eq!(error.store_id(), Some(StoreId(1)));
    assert!(bench.elapsed() >= secs(300) && bench.elapsed() < secs(301));
    assert_eq!(bench.report().released().count(), 3);
}

#[test]
fn r09_a_region_that_was_merged_away_is_not_asked_again() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    bench.cluster.merge_into_left(102);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(102)), 1);
    let Some(Ask::Wait { target, .. }) = bench.last(is_wait_101) else {
        panic!("asked");
    };
    assert_eq!(
        target.epoch.version, 11,
        "the region that holds the keys now"
    );
    assert_eq!(bench.attempt(), 1);
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 5);
}

#[test]
fn r09_all_parts_of_a_region_that_split_are_asked() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    bench.cluster.split(101, Key::new("secret-00000x"), 500);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(500)), 1);
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(500)), 1);
    assert_eq!(bench.count(|ask| ask.is_read() && ask.about(101)), 1);
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 7);
    assert!(bench.elapsed() < secs(2), "{:?}", bench.elapsed());
}

#[test]
fn r09_two_failed_ranges_in_one_merged_region_are_asked_once() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    bench.cluster.merge_into_left(103);
    bench.cluster.merge_into_left(102);
    bench.run_to(PhaseName::Hold);
    let merged = bench.count(|ask| {
        matches!(ask, Ask::Wait { target, .. } if target.region_id.0 == 101 && target.epoch.version > 10)
    });
    assert_eq!(merged, 1);
}

#[test]
fn r09_the_look_for_another_range_does_not_cut_a_backoff_short() {
    let mut bench = Bench::new();
    // Both regions are led by store 1.
    bench.when(
        |ask| ask.is_wait() && (ask.about(101) || ask.about(104)),
        || Act::Refuse(RegionErrorKind::Other),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(120));
    for id in [101, 104] {
        let times = bench.times(|ask| ask.is_wait() && ask.about(id));
        let pauses: Vec<_> = times
            .windows(2)
            .map(|pair| pair[1].saturating_duration_since(pair[0]))
            .collect();
        let late = &pauses[20..];
        assert!(late.iter().all(|pause| *pause >= secs(2)), "{pauses:?}");
    }
}

/// Region 103 has no leader, so there is always something to look at.
fn looking() -> Bench {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    bench
}

fn is_listing_of_2(ask: &Ask) -> bool {
    ask.is_claims() && ask.at(2)
}

#[test]
fn r09_a_listing_that_fails_is_repeated_after_its_backoff() {
    let mut bench = looking();
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.when(is_listing_of_2, || Act::Fail(FailureKind::Unavailable));
    bench.run_for(secs(10));
    let times: Vec<_> = bench
        .asked_since(mark, is_listing_of_2)
        .map(|(at, _)| at)
        .collect();
    assert!(times.len() >= 4, "{times:?}");
    let first = times[1].saturating_duration_since(times[0]);
    assert!(first >= ms(50) && first <= ms(160), "{first:?}");
}

#[test]
fn r09_listings_of_a_store_take_no_more_than_half_of_the_time() {
    let mut bench = looking();
    bench.run_to(PhaseName::WaitApply);
    let mark = bench.mark();
    bench.when(is_listing_of_2, || Act::After(secs(2)));
    bench.run_for(secs(30));
    let times: Vec<_> = bench
        .asked_since(mark, is_listing_of_2)
        .map(|(at, _)| at)
        .collect();
    assert!(times.len() >= 4, "{times:?}");
    for pair in times.windows(2) {
        let pause = pair[1].saturating_duration_since(pair[0]);
        assert!(pause >= secs(4), "{pause:?}");
    }
}

#[test]
fn r09_the_comparison_does_not_wait_for_the_rest_between_listings() {
    let mut bench = looking();
    bench.run_to(PhaseName::WaitApply);
    bench.when(is_listing_of_2, || Act::After(secs(9)));
    bench.run_to_ask("a slow listing", is_listing_of_2);
    bench.run_for(secs(8));
    bench.cluster.lead(103, 1);
    bench.run_to(PhaseName::Verify);
    let times = bench.times(is_listing_of_2);
    let [.., slow, last] = times[..] else {
        panic!("{times:?}");
    };
    assert_eq!(last, bench.now, "together with all others");
    assert!(last < slow + secs(18), "the rest would be as long again");
}

#[test]
fn r09_a_region_that_is_claimed_anew_is_asked_there_and_looked_for_nowhere_else() {
    let mut bench = Bench::new();
    bench.first(1, is_wait_101, || Act::Never);
    // Its refusal leads to a new listing of the store that leads 101, too.
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.cluster.region(101).region.epoch.conf_ver += 1;
    bench.run_for(ms(90));
    let of_101 = bench.cluster.region(101).region.range.clone();
    let scans = bench.count(|ask| match ask {
        Ask::Scan { range, .. } => range.overlaps(&of_101),
        _ => false,
    });
    assert_eq!(scans, 0);
    assert_eq!(bench.count(is_wait_101), 1, "one at a time");
    bench.release(is_wait_101);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(is_wait_101), 2);
}

#[test]
fn r09_a_read_call_that_fails_is_backed_off() {
    let mut bench = Bench::new();
    bench.first(
        1,
        |ask| ask.is_read() && ask.about(101),
        || Act::Fail(FailureKind::Transport),
    );
    bench.run_to_ask("a read", |ask| ask.is_read() && ask.about(101));
    let from = bench.now;
    bench.run_to_ask("a look", |ask| ask.is_scan() || ask.is_claims());
    let pause = bench.now.saturating_duration_since(from);
    assert!(pause >= ms(50), "{pause:?}");
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    bench.run_to(PhaseName::Hold);
}

/// Region 101 takes in 102 and moves to store 3, where it fails. What was 101
/// before is looked for as well, and that look finds the same region.
#[test]
fn r09_what_failed_rests_whichever_look_finds_it() {
    for seed in 0..8 {
        let mut bench = Bench::with(3, 6, |config| config.seed = seed);
        let at_3 = |ask: &Ask| is_wait_101(ask) && ask.at(3);
        bench.first(1, is_wait_101, || Act::Refuse(RegionErrorKind::NotLeader));
        bench.first(1, at_3, || Act::Refuse(RegionErrorKind::NotReady));
        let is_scan_from = |ask: &Ask, index| matches!(ask, Ask::Scan { range, .. } if *range.start() == key(index));
        bench.first(1, move |ask| is_scan_from(ask, 0), || Act::Never);
        bench.run_to(PhaseName::WaitApply);
        bench.cluster.merge_into_left(102);
        bench.cluster.lead(101, 3);
        bench.run_to_ask("it is asked at store 3", at_3);
        let mark = bench.mark();
        bench.run_for(ms(2));
        bench.release(Ask::is_scan);
        bench.run_to_ask("it is asked once more", at_3);
        // It failed for what was 102, and is not asked before that is due.
        let looks = bench.count_since(mark, move |ask| is_scan_from(ask, 1));
        assert_eq!(looks, 1, "seed {seed}");
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.count(at_3), 2, "seed {seed}");
    }
}

/// PD, which is slow, names store 2. By then the listing of store 1 has brought
/// the region back, and it is asked there (or about to be).
#[test]
fn r09_what_is_asked_again_since_is_looked_for_nowhere_else() {
    for window in [1, 512] {
        let mut bench = Bench::with(3, 6, |config| config.window = window);
        let mut told = bench.cluster.scan(&range(key(0), None), 100);
        told[0].leader = Some(StoreId(2));
        bench.cluster.pd = Some(told);
        // With a window of one region 104 keeps 101 from being sent.
        bench.when(|ask| ask.is_wait() && ask.at(1), || Act::Never);
        bench.first(1, is_wait_101, || Act::Refuse(RegionErrorKind::NotReady));
        bench.when(Ask::is_scan, || Act::After(ms(20)));
        bench.run_to(PhaseName::WaitApply);
        let mark = bench.mark();
        bench.run_to_ask("PD is asked", Ask::is_scan);
        bench.run_for(ms(30));
        let listed = |id| bench.count_since(mark, move |ask| ask.is_claims() && ask.at(id));
        assert_eq!((listed(1), listed(2)), (1, 0), "window {window}");
    }
}
