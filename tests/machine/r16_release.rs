//! R16: one way out, each store's result kept.

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Event, Outcome};
use snapshot_prepare::progress::{PhaseName, ReleaseState};
use snapshot_prepare::region::StoreId;

use crate::bench::*;
use crate::cluster::*;

fn held() -> Bench {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.run_for(secs(40));
    bench
}

fn is_finish_2(ask: &Ask) -> bool {
    ask.is_finish() && ask.at(2)
}

#[test]
fn r16_finish_goes_to_all_at_once() {
    let mut bench = held();
    let mark = bench.mark();
    bench.tell(Event::FinishRequested);
    let stores: Vec<_> = bench
        .asked_since(mark, Ask::is_finish)
        .filter_map(|(_, ask)| ask.store().map(|id| id.0))
        .collect();
    assert_eq!(stores, [1, 2, 3]);
    assert_eq!(bench.run_to_end(), Outcome::Finished);
    for id in 1..=3 {
        assert_eq!(bench.state_of(id), Some(ReleaseState::Released));
    }
    assert_eq!(bench.report().error, None);
    assert_eq!(bench.report().unreleased().count(), 0);
}

#[test]
fn r16_a_stream_stays_open_until_its_end_was_read() {
    let mut bench = held();
    bench.on(|ask| {
        is_finish_2(ask).then(|| {
            Act::Say(vec![
                (ms(10), ask.valid(true)),
                (secs(3), ask.failed(failure(FailureKind::Finished))),
            ])
        })
    });
    bench.tell(Event::FinishRequested);
    bench.run_for(secs(2));
    assert_eq!(bench.count(|ask| ask.is_close() && ask.at(2)), 0);
    assert_eq!(bench.count(|ask| ask.is_close() && ask.at(1)), 1);
    assert_eq!(bench.run_to_end(), Outcome::Finished);
    assert_eq!(bench.count(|ask| ask.is_close() && ask.at(2)), 1);
}

/// Finishes with an odd end at store 2 and checks that the hold is lost by it.
fn not_good(act: impl Fn(&Ask) -> Act + 'static, state: &str) -> Bench {
    let mut bench = held();
    bench.on(move |ask| is_finish_2(ask).then(|| act(ask)));
    let outcome = bench.finish();
    let Outcome::HoldLost(error) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.store_id(), Some(StoreId(2)), "{error}");
    assert!(
        matches!(
            error.kind(),
            ErrorKind::ReleaseUnconfirmed | ErrorKind::LeaseLost | ErrorKind::Superseded
        ),
        "{error:?}"
    );
    assert_eq!(bench.report().error.as_ref(), Some(error));
    let found = format!("{:?}", bench.state_of(2).expect("named"));
    assert!(found.starts_with(state), "{found}");
    for id in [1, 3] {
        assert_eq!(bench.state_of(id), Some(ReleaseState::Released));
    }
    bench
}

#[test]
fn r16_a_finish_that_had_lapsed_is_not_good() {
    let bench = not_good(
        |ask| {
            Act::Say(vec![
                (ms(1), ask.valid(false)),
                (ms(2), ask.failed(failure(FailureKind::Finished))),
            ])
        },
        "ReleasedAfterLapse",
    );
    let error = bench.report().error.as_ref().expect("lost").to_string();
    assert!(error.contains("not in force any more"), "{error}");
}

#[test]
fn r16_a_finish_without_an_answer_is_not_good() {
    let bench = not_good(|_| Act::Never, "Unknown");
    let asked = bench.times(is_finish_2)[0];
    assert_eq!(bench.report().closed_at, asked + secs(10));
    let last = *bench
        .times(|ask| ask.is_lease() && ask.at(2))
        .last()
        .expect("leased");
    let left: Vec<_> = bench.report().unreleased().collect();
    assert_eq!(left.len(), 1);
    let until = last + secs(120);
    let expected = until.saturating_duration_since(bench.report().closed_at);
    assert_eq!(left[0].0, StoreId(2));
    assert!(left[0].1 >= expected, "not named for shorter than it lasts");
    assert!(left[0].1 <= expected + secs(2), "{:?}", left[0].1);
}

#[test]
fn r16_a_stream_that_ends_well_without_the_answer_is_not_good() {
    not_good(|_| Act::Fail(FailureKind::Finished), "Unknown");
}

#[test]
fn r16_a_stream_that_breaks_before_the_answer_is_not_good() {
    for kind in FailureKind::ALL {
        not_good(move |_| Act::Fail(kind), "Unknown");
    }
}

#[test]
fn r16_an_answer_is_good_however_the_stream_ends_after_it() {
    for kind in [
        Some(FailureKind::Transport),
        Some(FailureKind::Cancelled),
        None,
    ] {
        let mut bench = held();
        bench.on(move |ask| {
            is_finish_2(ask).then(|| {
                let mut events = vec![(ms(1), ask.valid(true))];
                events.extend(kind.map(|kind| (ms(2), ask.failed(failure(kind)))));
                Act::Say(events)
            })
        });
        let from = bench.now;
        assert_eq!(bench.finish(), Outcome::Finished, "{kind:?}");
        assert_eq!(bench.state_of(2), Some(ReleaseState::Released));
        assert!(bench.now <= from + secs(10), "{kind:?}");
    }
}

#[test]
fn r16_a_late_answer_after_the_deadline_changes_nothing() {
    let mut bench = held();
    bench.on(|ask| is_finish_2(ask).then(|| Act::Say(vec![(secs(12), ask.valid(true))])));
    lost(&bench.finish(), ErrorKind::ReleaseUnconfirmed);
    let report = bench.report().clone();
    bench.run_for(secs(5));
    assert_eq!(*bench.report(), report);
}

#[test]
fn r16_a_renewal_in_flight_that_is_answered_not_valid_spoils_the_verdict() {
    let mut bench = held();
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_to_ask("a renewal", |ask| ask.is_lease() && ask.at(2));
    bench.when(is_finish_2, || Act::Never);
    bench.tell(Event::FinishRequested);
    let renewal = bench.withheld[0].clone();
    let finish = bench.withheld[1].clone();
    // The renewal found the lease lapsed and made a new one, which Finish ends.
    bench.tell(renewal.valid(false));
    bench.tell(finish.valid(true));
    bench.tell(finish.failed(failure(FailureKind::Finished)));
    let outcome = bench.run_to_end();
    let Outcome::HoldLost(error) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.store_id(), Some(StoreId(2)));
}

#[test]
fn r16_a_renewal_in_flight_that_is_never_answered_spoils_the_verdict() {
    let mut bench = held();
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_to_ask("a renewal", |ask| ask.is_lease() && ask.at(2));
    // It may have found the lease lapsed and made a new one, which Finish ends.
    let error = lost(&bench.finish(), ErrorKind::ReleaseUnconfirmed);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert_eq!(bench.state_of(2), Some(ReleaseState::ReleasedAfterLapse));
}

#[test]
fn r16_a_renewal_in_flight_that_is_answered_valid_is_fine() {
    let mut bench = held();
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_to_ask("a renewal", |ask| ask.is_lease() && ask.at(2));
    bench.tell(Event::FinishRequested);
    let renewal = bench.withheld[0].clone();
    bench.tell(renewal.valid(true));
    assert_eq!(bench.run_to_end(), Outcome::Finished);
}

#[test]
fn r16_no_renewal_follows_once_finish_is_queued() {
    let mut bench = held();
    bench.when(Ask::is_finish, || Act::Never);
    let mark = bench.mark();
    bench.tell(Event::FinishRequested);
    bench.run_to_end();
    assert_eq!(bench.count_since(mark, Ask::is_lease), 0);
}

#[test]
fn r16_cancel_in_each_phase_releases_what_may_be_leased() {
    for (phase, finishes) in [
        (PhaseName::Connect, 0),
        (PhaseName::Suspend, 3),
        (PhaseName::WaitApply, 3),
        (PhaseName::Verify, 3),
        (PhaseName::Hold, 3),
    ] {
        let mut bench = Bench::new();
        bench.run_to(phase);
        if phase == PhaseName::Connect {
            bench.run_for(ms(100));
        }
        let from = bench.now;
        bench.tell(Event::CancelRequested);
        assert_eq!(bench.run_to_end(), Outcome::Cancelled, "{phase}");
        assert_eq!(bench.count(Ask::is_finish), finishes, "{phase}");
        assert_eq!(bench.report().released().count(), finishes, "{phase}");
        assert!(bench.now <= from + secs(1), "promptly in {phase}");
        assert_eq!(bench.report().stores.len(), finishes, "{phase}");
    }
}

#[test]
fn r16_cancel_before_anything_was_asked_is_over_at_once() {
    let mut bench = Bench::new();
    bench.when(|_| true, || Act::Never);
    bench.tell(Event::CancelRequested);
    assert_eq!(bench.machine.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn r16_a_lease_handed_out_and_unanswered_is_finished_too() {
    let mut bench = Bench::new();
    bench.when(Ask::is_lease, || Act::Never);
    bench.run_to(PhaseName::Suspend);
    bench.tell(Event::CancelRequested);
    assert_eq!(bench.count(Ask::is_finish), 3);
}

#[test]
fn r16_cancel_between_two_attempts_ends_the_run() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    let lease = bench.last(Ask::is_lease).expect("leased");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    assert_eq!(bench.phase(), PhaseName::Release);
    bench.tell(Event::CancelRequested);
    assert_eq!(bench.run_to_end(), Outcome::Cancelled);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r16_cancel_does_not_cut_a_release_short() {
    let mut bench = held();
    bench.when(is_finish_2, || Act::After(secs(6)));
    bench.tell(Event::FinishRequested);
    bench.run_for(secs(1));
    bench.tell(Event::CancelRequested);
    assert_eq!(bench.phase(), PhaseName::Release);
    bench.run_to_end();
    assert_eq!(bench.state_of(2), Some(ReleaseState::Released));
    assert_eq!(
        bench.report().closed_at,
        bench.times(is_finish_2)[0] + secs(6) + ms(1)
    );
}

#[test]
fn r16_cancel_after_cancel_and_finish_after_cancel_change_nothing() {
    for event in [Event::CancelRequested, Event::FinishRequested] {
        let mut bench = held();
        bench.tell(Event::CancelRequested);
        bench.tell(event);
        assert_eq!(bench.run_to_end(), Outcome::Cancelled);
        assert_eq!(bench.count(Ask::is_finish), 3);
    }
}

#[test]
fn r16_finish_twice_is_finish_once() {
    let mut bench = held();
    bench.tell(Event::FinishRequested);
    bench.tell(Event::FinishRequested);
    assert_eq!(bench.run_to_end(), Outcome::Finished);
    let report = bench.report().clone();
    bench.tell(Event::FinishRequested);
    bench.tell(Event::CancelRequested);
    bench.tell(Event::LockLost);
    assert_eq!(bench.machine.outcome(), Some(&Outcome::Finished));
    assert_eq!(*bench.report(), report);
    assert_eq!(bench.count(Ask::is_finish), 3);
}

#[test]
fn r16_finish_before_the_hold_is_never_a_good_end() {
    for phase in [
        PhaseName::Connect,
        PhaseName::Suspend,
        PhaseName::WaitApply,
        PhaseName::Verify,
    ] {
        let mut bench = Bench::new();
        bench.run_to(phase);
        bench.tell(Event::FinishRequested);
        bench.run_for(secs(20));
        assert_ne!(bench.machine.outcome(), Some(&Outcome::Finished), "{phase}");
    }
}

#[test]
fn r16_a_lost_hold_is_released_everywhere_and_stays_lost() {
    let mut bench = held();
    bench.tell(Event::LockLost);
    bench.tell(Event::FinishRequested);
    lost(&bench.run_to_end(), ErrorKind::LockLost);
    for id in 1..=3 {
        assert_eq!(bench.state_of(id), Some(ReleaseState::Released));
    }
}

#[test]
fn r16_a_store_left_suspended_by_an_earlier_attempt_is_named_at_the_end() {
    let mut bench = Bench::with(3, 6, |config| config.lease = secs(600));
    bench.when(is_finish_2, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    let sent = bench.times(|ask| ask.is_lease() && ask.at(2))[0];
    let lease = bench
        .last(|ask| ask.is_lease() && ask.at(1))
        .expect("leased");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench.when(
        |ask| ask.is_open() && ask.at(3),
        || Act::Fail(FailureKind::Unavailable),
    );
    failed(&bench.run_to_end(), ErrorKind::Unreachable);
    // Store 1's stream had broken, store 2 never answered its Finish.
    let left: Vec<_> = bench.report().unreleased().collect();
    let ids: Vec<_> = left.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [1, 2]);
    let ends = (sent + secs(600)).saturating_duration_since(bench.report().closed_at);
    for (id, time) in left {
        assert!(time >= ends && time <= ends + secs(2), "{id}: {time:?}");
    }
}

#[test]
fn r16_the_suspended_time_runs_to_the_last_finish() {
    let mut bench = held();
    bench.when(is_finish_2, || Act::After(secs(4)));
    assert_eq!(bench.finish(), Outcome::Finished);
    let first = bench.times(Ask::is_lease)[0];
    let last = bench.times(is_finish_2)[0] + secs(4);
    assert_eq!(
        bench.report().suspended_time,
        Some(last.saturating_duration_since(first))
    );
    let prepared = bench.machine.prepare_report().expect("held").prepare_time;
    assert_eq!(bench.report().prepare_time, Some(prepared));
}

#[test]
fn r16_a_store_that_never_answers_does_not_hold_up_the_others() {
    let mut bench = held();
    bench.when(is_finish_2, || Act::Never);
    bench.tell(Event::FinishRequested);
    bench.run_for(secs(1));
    for id in [1, 3] {
        assert_eq!(bench.count(|ask| ask.is_close() && ask.at(id)), 1);
    }
    bench.run_to_end();
}

#[test]
fn r16_a_pause_of_ours_before_finish_is_seen() {
    // The lease ended on our clock before finish was asked for.
    let mut bench = held();
    bench.now = bench.now + secs(300);
    let outcome = bench.finish();
    lost(&outcome, ErrorKind::LeaseLost);
}
