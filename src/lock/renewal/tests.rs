//! Laws of [`Renewal`], by tables and by runs against a server with a clock.

use proptest::prelude::*;

use super::*;
use crate::lock::held::Loss;

const TIMING: Timing = Timing {
    margin: Duration::from_secs(2),
    check_interval: Duration::from_secs(10),
    call_timeout: Duration::from_secs(10),
    backoff_min: Duration::from_millis(200),
    backoff_max: Duration::from_secs(10),
};

const TTL: Duration = Duration::from_secs(30);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(millis * 1000)
}

/// A lock of 30 s that was asked for at 0 and answered at 1 s.
fn held() -> Renewal {
    Renewal::new(TIMING, at(0), Some(TTL), at(1000))
}

#[test]
fn the_time_counts_from_the_asking_less_the_margin() {
    assert_eq!(held().valid_until(), at(28_000));
    let endless = Renewal::new(TIMING, at(0), None, at(1000));
    assert_eq!(endless.valid_until(), Timestamp::MAX);
}

#[test]
fn a_third_of_what_was_granted_passes_between_renewals() {
    let mut renewal = held();
    assert_eq!(renewal.step(at(1000)), Step::Wait { until: at(10_000) });
    assert_eq!(renewal.step(at(9_999)), Step::Wait { until: at(10_000) });
    // Half of the 18 s that are left.
    let deadline = at(19_000);
    assert_eq!(renewal.step(at(10_000)), Step::Renew { deadline });
    assert_eq!(renewal.step(at(10_001)), Step::Wait { until: deadline });
    renewal.acknowledged(Some(TTL), at(11_000));
    assert_eq!(renewal.valid_until(), at(38_000));
    assert_eq!(renewal.step(at(11_000)), Step::Wait { until: at(20_000) });
}

#[test]
fn what_the_server_grants_counts_also_when_it_is_less() {
    let mut renewal = held();
    assert!(matches!(renewal.step(at(10_000)), Step::Renew { .. }));
    renewal.acknowledged(Some(Duration::from_secs(6)), at(10_100));
    assert_eq!(renewal.valid_until(), at(14_000));
    assert_eq!(renewal.step(at(10_100)), Step::Wait { until: at(12_000) });
}

#[test]
fn a_grant_within_the_margin_is_no_lock() {
    let mut renewal = Renewal::new(TIMING, at(0), Some(TIMING.margin), at(0));
    assert_eq!(renewal.step(at(0)), Step::Lost(Loss::Lapsed));
}

#[test]
fn unanswered_renewals_extend_nothing_and_the_clock_ends_it() {
    let mut renewal = held();
    let mut now = at(1000);
    let mut sent = 0;
    let lost = loop {
        match renewal.step(now) {
            Step::Wait { until } => {
                assert!(until > now);
                now = until;
            }
            Step::Renew { deadline } => {
                assert!(deadline > now && deadline <= at(28_000));
                sent += 1;
            }
            Step::Lost(loss) => break loss,
        }
    };
    assert_eq!((lost, now), (Loss::Lapsed, at(28_000)));
    assert!(sent >= 4, "only {sent} attempts");
}

#[test]
fn a_failure_is_followed_by_growing_pauses() {
    let mut renewal = Renewal::new(TIMING, at(0), None, at(0));
    let mut now = at(10_000);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        assert!(matches!(renewal.step(now), Step::Renew { .. }));
        renewal.failed(now);
        let Step::Wait { until } = renewal.step(now) else {
            panic!("no pause");
        };
        pauses.push(until.saturating_duration_since(now).as_millis());
        now = until;
    }
    assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    // Success begins anew.
    assert!(matches!(renewal.step(now), Step::Renew { .. }));
    renewal.acknowledged(None, now);
    now = now + TIMING.check_interval;
    assert!(matches!(renewal.step(now), Step::Renew { .. }));
    renewal.failed(now);
    assert_eq!(
        renewal.step(now),
        Step::Wait {
            until: now + TIMING.backoff_min
        }
    );
}

#[test]
fn many_failures_do_not_overflow() {
    let mut renewal = Renewal::new(TIMING, at(0), None, at(0));
    for _ in 0..200 {
        renewal.failed(at(0));
    }
    assert_eq!(renewal.step(at(0)), Step::Wait { until: at(10_000) });
}

#[test]
fn an_endless_lock_does_not_lapse_but_can_be_lost() {
    let mut renewal = Renewal::new(TIMING, at(0), None, at(0));
    assert!(matches!(
        renewal.step(at(u64::MAX / 2000)),
        Step::Renew { .. }
    ));
    renewal.gone(Loss::Removed);
    assert_eq!(renewal.step(at(0)), Step::Lost(Loss::Removed));
    assert_eq!(renewal.valid_until(), Timestamp::ZERO);
}

#[test]
fn the_first_loss_stays() {
    let mut renewal = held();
    renewal.gone(Loss::Removed);
    renewal.gone(Loss::Abandoned);
    renewal.acknowledged(Some(TTL), at(2000));
    assert_eq!(renewal.step(at(60_000)), Step::Lost(Loss::Removed));
}

#[test]
fn an_answer_after_the_end_brings_nothing_back() {
    let mut renewal = held();
    assert!(matches!(renewal.step(at(27_000)), Step::Renew { .. }));
    renewal.acknowledged(Some(TTL), at(28_000));
    assert_eq!(renewal.step(at(28_000)), Step::Lost(Loss::Lapsed));
}

#[test]
fn an_answer_that_nobody_waits_for_extends_nothing() {
    let mut renewal = held();
    renewal.acknowledged(Some(TTL), at(20_000));
    assert_eq!(renewal.valid_until(), at(28_000));
    assert!(matches!(renewal.step(at(20_000)), Step::Renew { .. }));
    renewal.failed(at(21_000));
    renewal.acknowledged(Some(TTL), at(22_000));
    assert_eq!(renewal.valid_until(), at(28_000));
}

/// What the server does with a renewal.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// It acts, and the answer comes after so many milliseconds.
    Good(u64),
    /// It acts, and the answer is lost.
    Lost,
    /// It does not act and says so after so many milliseconds.
    Failed(u64),
    /// Nothing reaches it.
    Swallowed,
    /// It grants something else from now on, in milliseconds.
    Grants(u64),
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        (0..3000_u64).prop_map(Answer::Good),
        (0..40_000_u64).prop_map(Answer::Good),
        Just(Answer::Lost),
        (0..12_000_u64).prop_map(Answer::Failed),
        Just(Answer::Swallowed),
        (0..60_000_u64).prop_map(Answer::Grants),
    ]
}

proptest! {
    /// The holder never trusts the lock longer than the server grants it, never
    /// renews a lost one, and never waits for nothing.
    #[test]
    fn trust_ends_before_the_servers_word(
        answers in prop::collection::vec(answer(), 1..40),
        first_answer in 0..40_000_u64,
        overslept in prop::collection::vec(0..3000_u64, 40),
    ) {
        let mut granted = TTL;
        let mut now = at(first_answer);
        let mut renewal = Renewal::new(TIMING, at(0), Some(granted), now);
        // When the server lets the lock go, should nothing else reach it; it
        // received the first request at once, which is the worst case.
        let mut server_end = at(0) + granted;
        let mut overslept = overslept.into_iter().cycle();
        let mut answers = answers.into_iter();
        let mut shortened = None;
        // The answer to the renewal in flight: when, and what.
        let mut pending: Option<(Timestamp, Option<Duration>)> = None;
        for _ in 0..500 {
            let step = renewal.step(now);
            if renewal.valid_until() > now {
                prop_assert!(renewal.valid_until() <= server_end.saturating_sub(TIMING.margin));
            }
            match step {
                Step::Lost(_) => {
                    for later in [0, 1, 1000, 1_000_000] {
                        let later = now + Duration::from_millis(later);
                        renewal.acknowledged(Some(TTL), later);
                        prop_assert!(matches!(renewal.step(later), Step::Lost(_)));
                        prop_assert_eq!(renewal.valid_until(), Timestamp::ZERO);
                    }
                    return Ok(());
                }
                Step::Renew { deadline } => {
                    prop_assert!(deadline > now);
                    prop_assert!(deadline <= renewal.valid_until());
                    shortened = None;
                    let Some(answer) = answers.next() else { return Ok(()) };
                    pending = match answer {
                        Answer::Good(after) => {
                            server_end = server_end.max(now + granted);
                            Some((now + Duration::from_millis(after), Some(granted)))
                        }
                        Answer::Grants(millis) => {
                            granted = Duration::from_millis(millis);
                            // A lease that gets shorter ends early only once
                            // the holder was told.
                            shortened = Some(now + granted);
                            server_end = server_end.max(now + granted);
                            Some((now, Some(granted)))
                        }
                        Answer::Lost => {
                            server_end = server_end.max(now + granted);
                            None
                        }
                        Answer::Failed(after) => Some((now + Duration::from_millis(after), None)),
                        Answer::Swallowed => None,
                    }
                    .filter(|(when, _)| *when < deadline);
                }
                Step::Wait { until } => {
                    prop_assert!(until > now, "waits until {until} at {now}");
                    match pending.take() {
                        Some((when, answer)) if when <= until => {
                            now = now.max(when);
                            match answer {
                                Some(granted) => {
                                    renewal.acknowledged(Some(granted), now);
                                    server_end = shortened.take().unwrap_or(server_end);
                                }
                                None => renewal.failed(now),
                            }
                        }
                        other => {
                            pending = other;
                            // Timers fire late now and then.
                            let late = overslept.next().unwrap_or(0);
                            now = until + Duration::from_millis(late.saturating_sub(2000));
                        }
                    }
                }
            }
        }
    }

    /// An outage that leaves the time of a few attempts loses no lock.
    #[test]
    fn an_outage_of_half_a_lease_is_survived(
        begins in 0..120_000_u64,
        round_trip in 1..1000_u64,
    ) {
        let ends = begins + 13_000;
        let mut renewal = held();
        let mut now = at(1000);
        while now < at(200_000) {
            match renewal.step(now) {
                Step::Lost(loss) => prop_assert!(false, "lost at {now}: {loss:?}"),
                Step::Wait { until } => now = until,
                Step::Renew { deadline } => {
                    let millis = now.as_micros() / 1000;
                    if (begins..ends).contains(&millis) {
                        now = deadline;
                        renewal.failed(now);
                    } else {
                        now = now + Duration::from_millis(round_trip);
                        renewal.acknowledged(Some(TTL), now);
                    }
                }
            }
        }
    }
}
