//! R3: a lease is trusted from the sending of the last acknowledged request.

use std::time::Duration;

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Config, Event, Machine, Notice};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::RegionErrorKind;
use snapshot_prepare::region::StoreId;
use snapshot_prepare::time::Timestamp;

use crate::bench::*;
use crate::cluster::*;

fn is_renewal(ask: &Ask) -> bool {
    ask.is_lease() && ask.at(2)
}

/// Runs in the hold until it is lost, with all renewals of store 2 unanswered
/// after one that is answered 5 s late. Returns when that one was sent.
fn lose(bench: &mut Bench) -> Timestamp {
    bench.run_to(PhaseName::Hold);
    bench.on({
        let mut answered = false;
        move |ask| {
            if !is_renewal(ask) {
                return None;
            }
            let act = if answered {
                Act::Never
            } else {
                Act::After(secs(5))
            };
            answered = true;
            Some(act)
        }
    });
    bench.run_to_ask("a renewal", is_renewal);
    let sent = bench.now;
    bench.run_to(PhaseName::Release);
    sent
}

#[test]
fn r03_trust_counts_from_the_sending_not_from_the_answer() {
    let mut bench = Bench::new();
    let sent = lose(&mut bench);
    assert_eq!(bench.now, sent + secs(118));
    let outcome = bench.run_to_end();
    let error = lost(&outcome, ErrorKind::LeaseLost);
    assert_eq!(error.store_id(), Some(StoreId(2)));
}

#[test]
fn r03_the_margin_is_taken_off() {
    let mut bench = Bench::with(3, 6, |config| {
        config.lease = secs(60);
        config.margin = secs(7);
    });
    let sent = lose(&mut bench);
    assert_eq!(bench.now, sent + secs(53));
}

#[test]
fn r03_unanswered_renewals_extend_nothing_while_they_go_on() {
    let mut bench = Bench::new();
    let sent = lose(&mut bench);
    let unanswered = bench
        .times(is_renewal)
        .into_iter()
        .filter(|at| *at > sent)
        .count();
    assert!(unanswered >= 3, "one a quarter, {unanswered} were sent");
    assert_eq!(bench.now, sent + secs(118));
}

#[test]
fn r03_an_answer_at_the_very_end_comes_too_late() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.when(is_renewal, || Act::Never);
    let acknowledged = *bench.times(is_renewal).last().expect("leased");
    bench.run_for(secs(100));
    let end = acknowledged + secs(118);
    assert_eq!(bench.phase(), PhaseName::Hold);
    bench.now = end;
    let renewal = bench.withheld[0].clone();
    bench.tell(renewal.valid(true));
    assert_eq!(bench.phase(), PhaseName::Release);
    lost(&bench.run_to_end(), ErrorKind::LeaseLost);
}

#[test]
fn r03_an_answer_just_before_the_end_saves_the_lease_until_its_own_end() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let acknowledged = *bench.times(is_renewal).last().expect("leased");
    bench.when(is_renewal, || Act::Never);
    bench.run_to_ask("a renewal", is_renewal);
    let sent = bench.now;
    bench.run_for(secs(1));
    bench.now = acknowledged + secs(118);
    bench.now = Timestamp::from_micros(bench.now.as_micros() - 1);
    let renewal = bench.withheld[0].clone();
    bench.tell(renewal.valid(true));
    assert_eq!(bench.phase(), PhaseName::Hold);
    bench.run_to(PhaseName::Release);
    assert_eq!(bench.now, sent + secs(118));
}

#[test]
fn r03_a_lease_that_ends_on_our_clock_before_the_hold_is_doubt() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    let sent = bench.times(is_renewal)[0];
    bench.when(is_renewal, || Act::Never);
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::Release);
    assert_eq!(bench.now, sent + secs(118));
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.causes()[0].kind(), ErrorKind::LeaseLost);
}

/// Checks that store 2 was asked for its lease once a quarter.
fn renewed_each_quarter(bench: &Bench, from: Timestamp, until: Timestamp) {
    let times: Vec<_> = bench
        .times(is_renewal)
        .into_iter()
        .filter(|at| *at >= from && *at <= until)
        .collect();
    assert!(times.len() >= 3, "{times:?}");
    for pair in times.windows(2) {
        let pause = pair[1].saturating_duration_since(pair[0]);
        assert!(pause >= secs(29) && pause <= secs(30), "{pause:?}");
    }
}

#[test]
fn r03_renewed_at_a_quarter_in_the_hold() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let from = bench.now;
    bench.run_for(secs(200));
    renewed_each_quarter(&bench, from, bench.now);
}

#[test]
fn r03_renewed_at_a_quarter_while_waiting() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    let from = bench.now;
    bench.run_for(secs(200));
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    renewed_each_quarter(&bench, from, bench.now);
}

#[test]
fn r03_renewed_at_a_quarter_while_verifying() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.when(
        |ask| ask.is_claims() && ask.at(3),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_to(PhaseName::Verify);
    let from = bench.now;
    bench.run_for(secs(200));
    assert_eq!(bench.phase(), PhaseName::Verify);
    renewed_each_quarter(&bench, from, bench.now);
}

#[test]
fn r03_a_renewal_goes_before_the_waits_of_the_same_moment() {
    let mut bench = Bench::with(1, 4, |config| config.window = 1);
    bench.when(Ask::is_wait, || Act::Never);
    let wait = bench.run_to_ask("a wait", Ask::is_wait);
    bench.now = bench.now + secs(30);
    let mark = bench.mark();
    bench.tell(wait.result(Ok(())));
    let order: Vec<_> = bench
        .asked_since(mark, |ask| ask.is_wait() || ask.is_lease())
        .map(|(_, ask)| ask.is_lease())
        .collect();
    assert_eq!(order, [true, false]);
}

#[test]
fn r03_the_loss_is_seen_first_when_we_were_paused_for_longer_than_the_lease() {
    for event in [
        None,
        Some(Event::FinishRequested),
        Some(Event::CancelRequested),
    ] {
        let mut bench = Bench::new();
        bench.run_to(PhaseName::Hold);
        bench.run_for(secs(40));
        bench.now = bench.now + secs(119);
        match event {
            None => bench.run_for(ms(0)),
            Some(event) => bench.tell(event),
        }
        assert_eq!(bench.phase(), PhaseName::Release);
        lost(&bench.run_to_end(), ErrorKind::LeaseLost);
    }
}

#[test]
fn r03_a_confirmation_after_a_pause_longer_than_the_lease_counts_for_nothing() {
    let mut bench = Bench::new();
    bench.when(Ask::is_wait, || Act::Never);
    let wait = bench.run_to_ask("a wait", Ask::is_wait);
    bench.now = bench.now + secs(130);
    let mark = bench.mark();
    bench.tell(wait.result(Ok(())));
    assert_eq!(bench.phase(), PhaseName::Release);
    assert_eq!(bench.count_since(mark, Ask::is_read), 0);
}

#[test]
fn r03_a_renewal_with_less_than_the_margin_left_is_reported() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let late = |bench: &Bench| {
        bench
            .notices()
            .filter(|(_, notice)| matches!(notice, Notice::LateRenewal { .. }))
            .count()
    };
    bench.run_for(secs(90));
    assert_eq!(late(&bench), 0);
    let sent = *bench.times(is_renewal).last().expect("leased");
    bench.now = sent + secs(117);
    bench.run_for(ms(0));
    assert_eq!(bench.phase(), PhaseName::Hold);
    assert_eq!(late(&bench), 3);
}

/// With a short lease, or a large margin, little is left at every renewal; and a store
/// that does not answer makes none late.
#[test]
fn r03_a_renewal_in_time_is_never_called_late() {
    for (lease, margin) in [(5, 2), (6, 3), (120, 60), (120, 2)] {
        for is_silent in [false, true] {
            let mut bench = Bench::with(3, 6, |config| {
                config.lease = secs(lease);
                config.margin = secs(margin);
            });
            bench.run_to(PhaseName::Hold);
            if is_silent {
                bench.when(is_renewal, || Act::Never);
                bench.run_to_end();
            } else {
                bench.run_for(secs(2 * lease));
                assert_eq!(bench.phase(), PhaseName::Hold);
            }
            let is_late = |(_, notice): (_, &Notice)| matches!(notice, Notice::LateRenewal { .. });
            assert!(!bench.notices().any(is_late), "{lease} s, {margin} s");
        }
    }
}

#[test]
fn r03_a_lease_that_cannot_work_is_a_configuration_error() {
    let now = Timestamp::ZERO;
    let refused = |lease: Duration, margin: Duration| {
        let config = Config {
            lease,
            margin,
            ..Config::default()
        };
        Machine::new(config, now).err().map(|error| error.kind())
    };
    for millis in [0, 1_000, 4_000, 4_999, 5_500, 119_999, 3_601_000] {
        assert_eq!(
            refused(ms(millis), secs(2)),
            Some(ErrorKind::Config),
            "{millis} ms"
        );
    }
    for seconds in [5, 6, 120, 3600] {
        assert_eq!(refused(secs(seconds), secs(2)), None, "{seconds} s");
    }
    assert_eq!(refused(secs(120), ms(999)), Some(ErrorKind::Config));
    assert_eq!(refused(secs(120), secs(1)), None);
}

#[test]
fn r03_the_report_says_until_when_the_hold_can_be_trusted() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let report = bench.machine.prepare_report().expect("held").clone();
    let oldest = (1..=3)
        .map(|id| {
            *bench
                .times(|a| a.is_lease() && a.at(id))
                .last()
                .expect("leased")
        })
        .min()
        .expect("three");
    assert_eq!(report.valid_until, oldest + secs(118));
    assert_eq!(bench.machine.valid_until(), Some(oldest + secs(118)));
}

#[test]
fn r03_renewed_while_other_stores_take_their_first_lease() {
    let mut bench = Bench::with(3, 6, |config| config.lease = secs(12));
    bench.first(
        1,
        |ask| ask.is_lease() && ask.at(3),
        || Act::After(ms(9_500)),
    );
    bench.run_to(PhaseName::WaitApply);
    assert_eq!(bench.count(is_renewal), 4, "at 0, 3, 6 and 9 s");
    assert_eq!(bench.attempt(), 1);
}
