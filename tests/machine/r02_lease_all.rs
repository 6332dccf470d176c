//! R2: no wait leaves before every store has acknowledged its first lease.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::Outcome;
use snapshot_prepare::progress::{PhaseName, ReleaseState};

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r02_no_wait_before_the_last_first_lease_is_acknowledged() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_lease() && ask.at(3), || Act::After(secs(5)));
    let lease = bench.run_to_ask("a lease", |ask| ask.is_lease() && ask.at(3));
    let sent = bench.now;
    bench.run_for(secs(4));
    assert_eq!(bench.phase(), PhaseName::Suspend);
    bench.run_to(PhaseName::WaitApply);
    assert_eq!(bench.now, sent + secs(5), "{lease:?}");
    let first_wait = bench.times(Ask::is_wait)[0];
    assert_eq!(first_wait, sent + secs(5), "then at once");
    bench.well_again();
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r02_the_first_answer_may_be_not_valid() {
    let mut bench = Bench::new();
    bench.first(3, Ask::is_lease, || Act::Valid(false));
    bench.run_to(PhaseName::WaitApply);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r02_an_unanswered_first_lease_is_doubt_after_ten_seconds() {
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_lease() && ask.at(3), || Act::Never);
    bench.run_to(PhaseName::Suspend);
    let sent = bench.times(Ask::is_lease)[0];
    bench.run_to(PhaseName::Release);
    assert_eq!(bench.now, sent + secs(10));
    assert_eq!(bench.count(Ask::is_wait), 0);
    assert_eq!(bench.count(Ask::is_finish), 3, "store 3 may hold it, too");
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    let causes = bench.causes();
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].store_id().map(|id| id.0), Some(3));
    assert_eq!(bench.finish(), Outcome::Finished);
}

#[test]
fn r02_a_failed_first_lease_is_doubt() {
    for kind in [FailureKind::Unavailable, FailureKind::Transport] {
        let mut bench = Bench::new();
        bench.first(
            1,
            |ask| ask.is_lease() && ask.at(3),
            move || Act::Fail(kind),
        );
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.attempt(), 2, "{kind:?}");
        // The stream of store 3 had ended, so only the others could be asked.
        assert_eq!(bench.count(Ask::is_finish), 2);
    }
}

#[test]
fn r02_the_whole_of_every_attempt_waits_for_all_leases() {
    let mut bench = Bench::new();
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(101),
        || Act::Fail(FailureKind::Transport),
    );
    bench.run_to(PhaseName::Release);
    let mark = bench.mark();
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::After(secs(7)));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    let leased = bench
        .asked_since(mark, |ask| ask.is_lease() && ask.at(2))
        .next()
        .map(|(at, _)| at + secs(7))
        .expect("leased");
    for (at, _) in bench.asked_since(mark, Ask::is_wait) {
        assert!(at >= leased);
    }
}

#[test]
fn r02_a_store_that_never_answers_its_lease_is_named_as_left_suspended() {
    let mut bench = Bench::new();
    bench.when(
        |ask| (ask.is_lease() || ask.is_finish()) && ask.at(3),
        || Act::Never,
    );
    let outcome = bench.run_to_end();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(bench.count(Ask::is_wait), 0);
    let last = *bench
        .times(|ask| ask.is_lease() && ask.at(3))
        .last()
        .expect("leased");
    match bench.state_of(3) {
        Some(ReleaseState::Unknown { until }) => assert!(until >= last + secs(120)),
        other => panic!("{other:?}"),
    }
}
