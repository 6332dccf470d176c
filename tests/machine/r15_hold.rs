//! R15: the hold has a maximum length, and any doubt ends it.

use snapshot_prepare::error::ErrorKind;
use snapshot_prepare::machine::{Event, Notice, Outcome};
use snapshot_prepare::progress::PhaseName;

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r15_a_hold_is_lost_after_an_hour() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let held = bench.now;
    bench.run_to(PhaseName::Release);
    assert_eq!(bench.now, held + secs(3600));
    let error = lost(&bench.run_to_end(), ErrorKind::HoldTimeout);
    assert!(error.to_string().contains("3600"), "{error}");
    assert_eq!(bench.count(Ask::is_finish), 3);
    assert_eq!(bench.report().released().count(), 3);
}

#[test]
fn r15_the_longest_hold_is_configured() {
    let mut bench = Bench::with(3, 6, |config| config.hold_timeout = secs(45));
    bench.run_to(PhaseName::Hold);
    let held = bench.now;
    assert_eq!(bench.machine.valid_until(), Some(held + secs(45)));
    bench.run_for(ms(44_999));
    assert_eq!(bench.phase(), PhaseName::Hold);
    bench.run_for(ms(1));
    assert_eq!(bench.phase(), PhaseName::Release);
    lost(&bench.run_to_end(), ErrorKind::HoldTimeout);
}

#[test]
fn r15_a_finish_just_before_the_end_is_good_and_at_the_end_is_not() {
    for (at, is_good) in [(44_999, true), (45_000, false)] {
        let mut bench = Bench::with(3, 6, |config| config.hold_timeout = secs(45));
        bench.run_to(PhaseName::Hold);
        let held = bench.now;
        bench.run_for(ms(44_000));
        bench.now = held + ms(at);
        let outcome = bench.finish();
        if is_good {
            assert_eq!(outcome, Outcome::Finished);
        } else {
            lost(&outcome, ErrorKind::HoldTimeout);
        }
    }
}

#[test]
fn r15_half_of_it_is_told_once() {
    // Also at an instant at which nothing else is due.
    for timeout in [secs(3600), secs(2222)] {
        let mut bench = Bench::with(3, 6, move |config| config.hold_timeout = timeout);
        bench.run_to(PhaseName::Hold);
        let held = bench.now;
        bench.run_for(timeout - secs(100));
        let halfway: Vec<_> = bench
            .notices()
            .filter(|(_, notice)| matches!(notice, Notice::HoldHalfway))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(halfway, [held + timeout / 2]);
    }
}

#[test]
fn r15_a_lost_lock_ends_the_hold() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.tell(Event::LockLost);
    assert_eq!(bench.phase(), PhaseName::Release);
    lost(&bench.run_to_end(), ErrorKind::LockLost);
    assert_eq!(bench.report().released().count(), 3);
}

#[test]
fn r15_a_lost_lock_ends_a_run_before_the_hold() {
    for phase in [
        PhaseName::Connect,
        PhaseName::Suspend,
        PhaseName::WaitApply,
        PhaseName::Verify,
    ] {
        let mut bench = Bench::new();
        bench.run_to(phase);
        bench.tell(Event::LockLost);
        failed(&bench.run_to_end(), ErrorKind::LockLost);
        assert_eq!(bench.attempt(), 1, "no other attempt after {phase}");
    }
}

#[test]
fn r15_a_lock_lost_between_two_attempts_ends_the_run() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    let lease = bench.last(Ask::is_lease).expect("leased");
    bench.tell(lease.failed(failure(snapshot_prepare::error::FailureKind::Transport)));
    assert_eq!(bench.phase(), PhaseName::Release);
    bench.tell(Event::LockLost);
    failed(&bench.run_to_end(), ErrorKind::LockLost);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r15_the_hold_tells_what_it_holds() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let report = bench.machine.prepare_report().expect("held");
    let stores: Vec<_> = report
        .stores
        .iter()
        .map(|(id, address)| (id.0, address.as_str()))
        .collect();
    assert_eq!(
        stores,
        [
            (1, "store-1:20160"),
            (2, "store-2:20160"),
            (3, "store-3:20160")
        ]
    );
    assert_eq!((report.regions, report.attempt), (6, 1));
    assert_eq!(report.held_at, bench.now);
    assert_eq!(report.suspended_at, bench.times(Ask::is_lease)[0]);
    assert_eq!(report.prepare_time, bench.elapsed());
    let told = bench
        .notices()
        .filter(|(_, notice)| matches!(notice, Notice::Held(_)))
        .count();
    assert_eq!(told, 1);
}
