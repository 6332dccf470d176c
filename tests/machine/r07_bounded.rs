//! R7: bounded waits in flight.

use snapshot_prepare::machine::{Event, Machine};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{RegionErrorKind, RegionId, StoreId};
use snapshot_prepare::time::Timestamp;

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r07_no_more_waits_in_flight_per_store_than_the_window() {
    let mut bench = Bench::with(2, 40, |config| config.window = 4);
    bench.when(Ask::is_wait, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(5));
    for id in 1..=2 {
        assert_eq!(bench.count(|ask| ask.is_wait() && ask.at(id)), 4);
    }
    let first = bench
        .withheld
        .iter()
        .find(|ask| ask.at(1))
        .cloned()
        .expect("withheld");
    bench.tell(first.result(Ok(())));
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.at(1)), 5);
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.at(2)), 4);
}

#[test]
fn r07_a_refused_wait_frees_its_place() {
    let mut bench = Bench::with(1, 10, |config| config.window = 1);
    bench.first(1, Ask::is_wait, || Act::Refuse(RegionErrorKind::NotReady));
    bench.run_to(PhaseName::Hold);
    let mut asked: Vec<_> = bench
        .asked_since(0, Ask::is_wait)
        .filter_map(|(_, ask)| ask.region())
        .collect();
    assert_eq!(asked.len(), 11);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 10);
}

#[test]
fn r07_the_window_is_512_by_default() {
    let mut bench = Bench::with(1, 530, |_| {});
    bench.when(Ask::is_wait, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    assert_eq!(bench.count(Ask::is_wait), 512);
    bench.well_again();
    bench.release(Ask::is_wait);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(Ask::is_wait), 530);
}

#[test]
fn r07_one_wait_per_region_though_it_is_claimed_again_and_again() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.on(|ask| match ask {
        // Store 1 lists each region twice in two parts.
        Ask::Claims { .. } if ask.at(1) => {
            let twice = Cluster::new(3, 6).claims_of(ask.store()?);
            Some(Act::Say(vec![
                (ms(1), ask.claims(twice.clone(), false)),
                (ms(2), ask.claims([twice.clone(), twice].concat(), true)),
            ]))
        }
        _ => None,
    });
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(100));
    assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(101)), 1);
}

#[test]
fn r07_regions_that_nobody_asked_for_do_not_pile_up() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    let Some(Ask::Wait { stream, target, .. }) = bench.withheld.first().cloned() else {
        panic!("a wait");
    };
    for nth in 0..2_000 {
        let mut other = target;
        other.region_id = RegionId(50_000 + nth);
        let answer = Ask::Wait {
            stream,
            store: StoreId(1),
            target: other,
        }
        .result(Ok(()));
        bench.tell(answer);
    }
    let shown = format!("{:?}", bench.machine);
    assert!(!shown.contains("50123"), "nothing of them is kept");
}

#[test]
fn r07_notices_that_nobody_reads_are_bounded() {
    let mut now = Timestamp::from_micros(1_000);
    let mut machine = Machine::new(Default::default(), now).expect("ok");
    // A notice every few seconds for the five minutes, and many lost attempts
    // would be needed to pass a thousand: it is enough that it stays bounded.
    while machine.outcome().is_none() {
        while machine.poll_effect().is_some() {}
        now = machine.poll_timeout().expect("a deadline").max(now);
        machine.handle_timeout(now);
    }
    let mut notices = 0;
    while machine.poll_notice().is_some() {
        notices += 1;
    }
    assert!((2..2_000).contains(&notices), "{notices}");
    machine.handle_event(Event::LockLost, now);
    assert!(machine.poll_notice().is_none());
}

#[test]
fn r07_few_scans_are_under_way_at_once() {
    let mut bench = Bench::with(3, 40, |_| {});
    for region in (101..=140).step_by(2) {
        bench.cluster.region(region).leader = None;
    }
    bench.when(Ask::is_scan, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(9));
    assert_eq!(bench.count(Ask::is_scan), 8);
    bench.run_for(secs(2));
    assert_eq!(bench.count(Ask::is_scan), 16);
}
