//! R4: doubt ends the attempt before the hold, and the hold for good.

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Notice, Outcome};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

/// A run that stays in the phase until the test goes on.
fn stuck_in(phase: PhaseName) -> Bench {
    let mut bench = Bench::new();
    match phase {
        PhaseName::WaitApply => bench.when(
            |ask| ask.is_wait() && ask.about(101),
            || Act::Refuse(RegionErrorKind::NotReady),
        ),
        PhaseName::Verify => {
            bench.run_to(PhaseName::WaitApply);
            bench.when(
                |ask| ask.is_claims() && ask.at(3),
                || Act::Fail(FailureKind::Unavailable),
            );
        }
        _ => {}
    }
    bench.run_to(phase);
    bench.run_for(secs(1));
    assert_eq!(bench.phase(), phase);
    bench
}

const BEFORE_HOLD: [PhaseName; 2] = [PhaseName::WaitApply, PhaseName::Verify];

/// Checks that one attempt ended and all of the next one was done again.
fn started_over(bench: &mut Bench, mark: usize, kind: ErrorKind, finishes: usize) {
    assert_eq!(bench.phase(), PhaseName::Release);
    let ended = bench.now;
    bench.well_again();
    bench.run_to(PhaseName::Connect);
    let reopened = bench.run_to_ask("a new stream", Ask::is_open);
    assert!(bench.now >= ended + ms(50), "after a backoff: {reopened:?}");
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.causes()[0].kind(), kind);
    assert_eq!(bench.count_since(mark, Ask::is_finish), finishes);
    assert_eq!(bench.count_since(mark, Ask::is_open), 3);
    for id in 101..=106 {
        assert!(
            bench.count_since(mark, |ask| ask.is_wait() && ask.about(id)) >= 1,
            "region {id} is waited for anew"
        );
        assert!(
            bench.count_since(mark, |ask| ask.is_read() && ask.about(id)) >= 1,
            "region {id} is read anew"
        );
    }
    assert_eq!(bench.finish(), Outcome::Finished);
}

#[test]
fn r04_a_renewal_answered_not_valid_ends_the_attempt() {
    for phase in BEFORE_HOLD {
        let mut bench = stuck_in(phase);
        let mark = bench.mark();
        bench.first(1, |ask| ask.is_lease() && ask.at(2), || Act::Valid(false));
        bench.run_to(PhaseName::Release);
        started_over(&mut bench, mark, ErrorKind::LeaseLost, 3);
        assert_eq!(bench.causes()[0].store_id(), Some(StoreId(2)));
    }
}

#[test]
fn r04_a_stream_that_ends_ends_the_attempt() {
    for phase in BEFORE_HOLD {
        for kind in [
            FailureKind::Transport,
            FailureKind::Finished,
            FailureKind::Cancelled,
            FailureKind::Unavailable,
        ] {
            let mut bench = stuck_in(phase);
            let mark = bench.mark();
            let lease = bench
                .last(|ask| ask.is_lease() && ask.at(2))
                .expect("leased");
            bench.tell(lease.failed(failure(kind)));
            started_over(&mut bench, mark, ErrorKind::StreamLost, 2);
            assert_eq!(bench.causes()[0].store_id(), Some(StoreId(2)));
        }
    }
}

#[test]
fn r04_failed_precondition_is_a_lost_lease() {
    for phase in BEFORE_HOLD {
        let mut bench = stuck_in(phase);
        let mark = bench.mark();
        let lease = bench
            .last(|ask| ask.is_lease() && ask.at(2))
            .expect("leased");
        bench.tell(lease.failed(failure(FailureKind::LeaseLost)));
        started_over(&mut bench, mark, ErrorKind::LeaseLost, 2);
    }
}

#[test]
fn r04_in_the_hold_a_not_valid_renewal_loses_it_for_good() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.first(1, |ask| ask.is_lease() && ask.at(2), || Act::Valid(false));
    bench.run_to(PhaseName::Release);
    let notices: Vec<_> = bench
        .notices()
        .filter(|(_, notice)| matches!(notice, Notice::HoldLost(_)))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(notices, [bench.now], "told at once");
    let error = lost(&bench.run_to_end(), ErrorKind::LeaseLost);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert_eq!(bench.attempt(), 1, "no second attempt");
    assert_eq!(bench.count(Ask::is_open), 3);
}

#[test]
fn r04_in_the_hold_a_stream_that_ends_loses_it() {
    for (kind, means) in [
        (FailureKind::Finished, ErrorKind::StreamLost),
        (FailureKind::Unavailable, ErrorKind::StreamLost),
        (FailureKind::Transport, ErrorKind::StreamLost),
        (FailureKind::Timeout, ErrorKind::StreamLost),
        (FailureKind::Cancelled, ErrorKind::StreamLost),
        (FailureKind::LeaseLost, ErrorKind::LeaseLost),
        (FailureKind::ResourceExhausted, ErrorKind::StreamLost),
        (FailureKind::Malformed, ErrorKind::StreamLost),
        (FailureKind::Other, ErrorKind::StreamLost),
    ] {
        let mut bench = Bench::new();
        bench.run_to(PhaseName::Hold);
        let lease = bench
            .last(|ask| ask.is_lease() && ask.at(2))
            .expect("leased");
        bench.tell(lease.failed(failure(kind)));
        let error = lost(&bench.run_to_end(), means);
        assert_eq!(error.store_id(), Some(StoreId(2)), "{kind:?}");
        assert!(error.to_string().contains("store-2:20160"), "{error}");
        assert_eq!(bench.count(Ask::is_open), 3, "{kind:?}");
    }
}

#[test]
fn r04_a_good_answer_right_after_repairs_nothing() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_to_ask("a renewal", |ask| ask.is_lease() && ask.at(2));
    bench.run_to_ask("another", |ask| ask.is_lease() && ask.at(2));
    let (first, second) = (bench.withheld[0].clone(), bench.withheld[1].clone());
    bench.tell(first.valid(false));
    bench.tell(second.valid(true));
    lost(&bench.run_to_end(), ErrorKind::LeaseLost);
}

#[test]
fn r04_doubt_of_one_store_while_the_others_suspend() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_lease() && ask.at(3), || Act::After(secs(8)));
    bench.run_to(PhaseName::Suspend);
    bench.run_for(secs(1));
    let lease = bench.last(|ask| ask.is_lease() && ask.at(1)).expect("sent");
    bench.tell(lease.failed(failure(FailureKind::Unavailable)));
    assert_eq!(bench.phase(), PhaseName::Release);
    assert_eq!(bench.count(Ask::is_finish), 2);
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
}

#[test]
fn r04_doubt_again_and_again_ends_at_the_prepare_deadline() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(102),
        || Act::Fail(FailureKind::Transport),
    );
    let outcome = bench.run_to_end();
    let error = outcome.error().expect("failed");
    assert!(matches!(outcome, Outcome::Failed(_)));
    // The last backoff may be cut short: an attempt that could only begin after
    // the deadline need not be waited for.
    assert!(bench.elapsed() >= secs(295) && bench.elapsed() < secs(311));
    assert!(error.to_string().contains("store 2"), "{error}");
    assert!(bench.attempt() >= 20, "with backoff: {}", bench.attempt());
    assert!(bench.attempt() < 500, "with backoff: {}", bench.attempt());
}

#[test]
fn r04_nothing_proven_in_an_attempt_counts_in_the_next() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(106), || Act::Never);
    bench.run_to_ask("the last wait", |ask| ask.is_wait() && ask.about(106));
    bench.run_for(secs(1));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    let lease = bench.last(|ask| ask.is_lease() && ask.at(1)).expect("sent");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench.well_again();
    bench.run_to(PhaseName::WaitApply);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.machine.progress().regions_confirmed, 0);
    let mark = bench.mark();
    bench.run_to(PhaseName::Verify);
    for id in 101..=106 {
        let reads = bench.count_since(mark, |ask| ask.is_read() && ask.about(id));
        assert_eq!(reads, 1, "region {id} is proven before the verification");
    }
}
