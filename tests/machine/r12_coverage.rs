//! R12: coverage is a union that only grows, to the end of the key space.

use snapshot_prepare::machine::{Config, Outcome};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::Key;

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r12_the_range_up_to_infinity_has_to_be_proven_too() {
    let mut bench = Bench::new();
    bench.cluster.region(106).leader = None;
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(60));
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    bench.cluster.lead(106, 1);
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r12_a_last_region_that_ends_at_a_high_key_leaves_a_gap() {
    let mut bench = Bench::new();
    let last = &mut bench.cluster.region(106).region;
    last.range = range(last.range.start().clone(), Some(Key::new(vec![0xff; 64])));
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(60));
    assert_ne!(bench.phase(), PhaseName::Hold);
}

#[test]
fn r12_the_first_key_has_to_be_proven_too() {
    let mut bench = Bench::new();
    let first = &mut bench.cluster.region(101).region;
    first.range = range(Key::new(vec![0]), first.range.end().as_key().cloned());
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(60));
    assert_ne!(bench.phase(), PhaseName::Hold);
}

#[test]
fn r12_a_single_region_of_all_keys_is_enough() {
    let mut bench = Bench::with(3, 1, |_| {});
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.finish(), Outcome::Finished);
}

#[test]
fn r12_a_target_needs_the_regions_that_overlap_it_and_no_others() {
    // From the middle of region 102 to the middle of region 104.
    let mut bench = Bench::with(3, 6, |config| {
        config.target = range(Key::new("secret-00001m"), Some(Key::new("secret-00003m")));
    });
    bench.cluster.region(106).leader = None;
    bench.run_to(PhaseName::Hold);
    let mut asked: Vec<_> = bench
        .asked_since(0, Ask::is_wait)
        .filter_map(|(_, ask)| ask.region().map(|id| id.0))
        .collect();
    asked.sort_unstable();
    assert_eq!(asked, [102, 103, 104]);
    assert_eq!(bench.count(Ask::is_scan), 0);
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 3);
    let leased: Vec<_> = bench
        .asked_since(0, Ask::is_finish)
        .filter_map(|(_, ask)| ask.store())
        .collect();
    assert!(leased.is_empty());
    assert_eq!(bench.finish(), Outcome::Finished);
    assert_eq!(bench.report().stores.len(), 3, "all stores are leased");
}

#[test]
fn r12_a_target_inside_one_region_is_held_by_it() {
    let config = Config {
        target: range(Key::new("secret-00002a"), Some(Key::new("secret-00002b"))),
        ..Config::default()
    };
    let mut bench = Bench::over(Cluster::new(3, 6), config);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(Ask::is_wait), 1);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(103)), 1);
}

#[test]
fn r12_a_smaller_region_with_the_same_start_takes_nothing_away() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(106), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    // A listing for another reason tells of a split of a proven region: what
    // was proven stays, and the split parts are looked at when verifying.
    bench.cluster.split(103, Key::new("secret-00002m"), 700);
    bench.run_for(secs(40));
    assert!(bench.machine.progress().regions_confirmed >= 4);
    bench.well_again();
    bench.release(|ask| ask.about(106));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 7);
    assert_eq!(bench.attempt(), 1);
}
