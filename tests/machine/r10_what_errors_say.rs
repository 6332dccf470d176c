//! R10: what each region error and each failure leads to.

use std::time::Duration;

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::Outcome;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::Key;
use snapshot_prepare::region::{RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

const REFUSALS: [RegionErrorKind; 10] = [
    RegionErrorKind::EpochNotMatch,
    RegionErrorKind::RegionNotFound,
    RegionErrorKind::NotLeader,
    RegionErrorKind::StaleCommand,
    RegionErrorKind::ServerIsBusy {
        backoff: Duration::ZERO,
    },
    RegionErrorKind::Duplicated,
    RegionErrorKind::NotReady,
    RegionErrorKind::WrongPeer,
    RegionErrorKind::Unserved,
    RegionErrorKind::Other,
];

#[test]
fn r10_a_refused_wait_is_repeated_whatever_it_says() {
    for kind in REFUSALS {
        let mut bench = Bench::new();
        bench.first(
            3,
            |ask| ask.is_wait() && ask.about(101),
            move || Act::Refuse(kind),
        );
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(101)), 4);
        assert_eq!(bench.count(|ask| ask.is_read() && ask.about(101)), 1);
        assert_eq!(bench.count(|ask| ask.is_wait() && ask.about(102)), 1);
        assert_eq!(bench.attempt(), 1, "{kind:?} is no doubt");
        assert!(bench.elapsed() < secs(5), "{kind:?}: {:?}", bench.elapsed());
    }
}

#[test]
fn r10_a_refused_read_is_repeated_whatever_it_says() {
    for kind in REFUSALS {
        let mut bench = Bench::new();
        bench.first(
            3,
            |ask| ask.is_read() && ask.about(101),
            move || Act::Refuse(kind),
        );
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.count(|ask| ask.is_read() && ask.about(101)), 4);
        assert_eq!(bench.attempt(), 1, "{kind:?} is no doubt");
        assert!(bench.elapsed() < secs(5), "{kind:?}: {:?}", bench.elapsed());
    }
}

#[test]
fn r10_a_call_that_no_engine_has_ends_the_run_at_once() {
    for read in [false, true] {
        let mut bench = Bench::new();
        bench.when(
            move |ask| (if read { ask.is_read() } else { ask.is_wait() }) && ask.at(2),
            || Act::Refuse(RegionErrorKind::Unsupported),
        );
        let error = failed(&bench.run_to_end(), ErrorKind::Unsupported);
        assert_eq!(error.store_id(), Some(StoreId(2)));
        assert!(bench.elapsed() < secs(1));
        assert_eq!(bench.count(Ask::is_finish), 3);
    }
}

#[test]
fn r10_news_of_the_region_leads_to_an_early_look() {
    for kind in [
        RegionErrorKind::EpochNotMatch,
        RegionErrorKind::RegionNotFound,
        RegionErrorKind::NotLeader,
    ] {
        let mut bench = Bench::new();
        bench.first(
            1,
            |ask| ask.is_wait() && ask.about(101),
            move || Act::Refuse(kind),
        );
        let wait = bench.run_to_ask("a wait", |ask| ask.is_wait() && ask.about(101));
        let asked = bench.now;
        let look = bench.run_to_ask("a look", |ask| ask.is_scan() || ask.is_claims());
        let pause = bench.now.saturating_duration_since(asked);
        assert!(pause <= ms(200), "{kind:?}: {pause:?} {wait:?} {look:?}");
        bench.run_to(PhaseName::Hold);
        assert!(bench.count(Ask::is_scan) >= 1, "{kind:?}: PD is asked, too");
    }
}

#[test]
fn r10_the_new_leader_is_found_and_asked() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    bench.when(
        |ask| ask.is_wait() && ask.about(101) && ask.at(1),
        || Act::Refuse(RegionErrorKind::NotLeader),
    );
    bench.cluster.lead(101, 3);
    bench.run_to(PhaseName::Hold);
    assert_eq!(
        bench.count(|ask| ask.is_wait() && ask.about(101) && ask.at(3)),
        1
    );
    assert!(bench.elapsed() < secs(1), "{:?}", bench.elapsed());
}

#[test]
fn r10_a_split_that_is_told_by_its_error_is_followed() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    bench.cluster.split(103, Key::new("secret-00002m"), 700);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(1), "{:?}", bench.elapsed());
    assert_eq!(bench.machine.prepare_report().expect("held").regions, 7);
}

#[test]
fn r10_a_busy_store_is_left_alone_for_the_delay_it_suggests() {
    for read in [false, true] {
        let mut bench = Bench::new();
        bench.first(
            1,
            move |ask| (if read { ask.is_read() } else { ask.is_wait() }) && ask.about(101),
            || Act::Refuse(RegionErrorKind::ServerIsBusy { backoff: secs(3) }),
        );
        bench.run_to(PhaseName::Hold);
        let waits = bench.times(|ask| ask.is_wait() && ask.about(101));
        let pause = waits[1].saturating_duration_since(waits[0]);
        assert!(pause >= secs(3) && pause < secs(5), "{read}: {pause:?}");
    }
}

#[test]
fn r10_an_absurd_suggested_delay_does_not_stop_the_run_for_good() {
    let mut bench = Bench::new();
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(101),
        || {
            Act::Refuse(RegionErrorKind::ServerIsBusy {
                backoff: Duration::MAX,
            })
        },
    );
    let outcome = {
        bench.run_for(secs(310));
        bench.phase()
    };
    assert!(
        matches!(outcome, PhaseName::Hold | PhaseName::Closed),
        "{outcome}"
    );
}

/// What each failure means: while dialing, and of a call.
const PERMANENT: [(FailureKind, ErrorKind); 5] = [
    (FailureKind::Unsupported, ErrorKind::Unsupported),
    (FailureKind::Tls, ErrorKind::Tls),
    (FailureKind::Unauthenticated, ErrorKind::Unauthenticated),
    (FailureKind::WrongService, ErrorKind::WrongService),
    (FailureKind::WrongCluster, ErrorKind::WrongCluster),
];

fn is_permanent(kind: FailureKind) -> bool {
    PERMANENT.iter().any(|(failure, _)| *failure == kind)
}

#[test]
fn r10_permanent_failures_of_a_dial_end_at_once_and_name_the_store() {
    for (failure, means) in PERMANENT {
        let mut bench = Bench::new();
        bench.when(|ask| ask.is_open() && ask.at(2), move || Act::Fail(failure));
        let error = failed(&bench.run_to_end(), means);
        assert_eq!(error.store_id(), Some(StoreId(2)), "{failure:?}");
        let text = error.to_string();
        assert!(text.contains("store-2:20160"), "{text}");
        assert!(bench.elapsed() < secs(1), "{failure:?}");
        assert_eq!(bench.count(Ask::is_lease), 0);
    }
}

#[test]
fn r10_permanent_failures_of_a_leased_stream_end_at_once() {
    for (failure, means) in PERMANENT {
        let mut bench = Bench::new();
        bench.when(
            |ask| ask.is_lease() && ask.at(2),
            move || Act::Fail(failure),
        );
        let error = failed(&bench.run_to_end(), means);
        assert_eq!(error.store_id(), Some(StoreId(2)), "{failure:?}");
        assert_eq!(bench.attempt(), 1);
        assert_eq!(bench.count(Ask::is_finish), 2, "the others are released");
    }
}

#[test]
fn r10_every_other_failure_of_a_dial_is_tried_again() {
    for kind in FailureKind::ALL {
        if is_permanent(kind) || kind == FailureKind::Superseded {
            continue;
        }
        let mut bench = Bench::new();
        bench.first(2, |ask| ask.is_open() && ask.at(2), move || Act::Fail(kind));
        bench.run_to(PhaseName::Hold);
        assert!(bench.elapsed() < secs(3), "{kind:?}: {:?}", bench.elapsed());
    }
}

#[test]
fn r10_every_other_failure_of_a_leased_stream_is_doubt() {
    for kind in FailureKind::ALL {
        if is_permanent(kind) || kind == FailureKind::Superseded {
            continue;
        }
        let mut bench = Bench::new();
        bench.first(1, |ask| ask.is_wait() && ask.at(2), move || Act::Fail(kind));
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.attempt(), 2, "{kind:?}");
        assert_eq!(bench.finish(), Outcome::Finished);
    }
}

type Which = fn(&Ask) -> bool;

/// Calls that a run makes in different phases.
const CALLS: [(&str, Which); 4] = [
    ("a store list", Ask::is_stores),
    ("a listing", |ask| ask.is_claims() && ask.at(2)),
    ("a read", |ask| ask.is_read() && ask.at(2)),
    ("a scan", Ask::is_scan),
];

/// A cluster in which PD is asked for a region, too.
fn with_a_scan() -> Bench {
    let mut bench = Bench::new();
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench
}

#[test]
fn r10_failures_of_calls_are_repeated_and_never_doubt() {
    for (what, which) in CALLS {
        for kind in FailureKind::ALL {
            if is_permanent(kind) {
                continue;
            }
            let mut bench = with_a_scan();
            bench.first(2, which, move || Act::Fail(kind));
            bench.run_to(PhaseName::Hold);
            assert_eq!(bench.attempt(), 1, "{what} {kind:?}");
            // Where PD does not answer, the stores' own listings may do.
            let least = if what == "a scan" { 1 } else { 3 };
            assert!(bench.count(which) >= least, "{what} {kind:?}");
            assert!(bench.elapsed() < secs(8), "{what} {kind:?}");
        }
    }
}

#[test]
fn r10_permanent_failures_of_calls_end_at_once() {
    for (what, which) in CALLS {
        for (failure, means) in PERMANENT {
            let mut bench = with_a_scan();
            bench.when(which, move || Act::Fail(failure));
            let outcome = bench.run_to_end();
            let error = failed(&outcome, means);
            if which(&Ask::Stores {
                request: snapshot_prepare::machine::RequestId(1),
            }) || what == "a scan"
            {
                assert!(error.to_string().contains("PD"), "{error}");
            } else {
                assert_eq!(error.store_id(), Some(StoreId(2)), "{what}");
            }
            assert!(bench.elapsed() < secs(2), "{what} {failure:?}");
        }
    }
}

#[test]
fn r10_calls_that_fail_while_verifying_are_repeated() {
    for which in [CALLS[0].1, CALLS[1].1] {
        let mut bench = Bench::new();
        bench.run_to(PhaseName::WaitApply);
        bench.first(3, which, || Act::Fail(FailureKind::Transport));
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.attempt(), 1);
    }
}

#[test]
fn r10_an_unsupported_version_is_named() {
    let mut bench = Bench::new();
    bench.cluster.store(2).version = "6.1.0".to_owned();
    bench.when(
        |ask| ask.is_claims() && ask.at(2),
        || Act::Fail(FailureKind::Unsupported),
    );
    let error = failed(&bench.run_to_end(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("6.1.0"), "{error}");
}

#[test]
fn r10_the_look_for_another_range_does_not_cut_a_busy_delay_short() {
    let mut bench = Bench::new();
    // Both regions are led by store 1.
    bench.first(
        1,
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::ServerIsBusy { backoff: secs(5) }),
    );
    bench.when(
        |ask| ask.is_wait() && ask.about(104),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(20));
    let times = bench.times(|ask| ask.is_wait() && ask.about(101));
    let pause = times[1].saturating_duration_since(times[0]);
    assert!(pause >= secs(5), "{pause:?}");
}

/// A store that is busy and suggests no delay is still left alone for a backoff.
#[test]
fn r10_busy_without_a_delay_is_no_reason_to_ask_at_once() {
    let busy = RegionErrorKind::ServerIsBusy {
        backoff: Duration::ZERO,
    };
    let mut bench = Bench::new();
    let wait = |ask: &Ask| ask.is_wait() && ask.about(101);
    bench.first(1, wait, move || Act::Refuse(busy));
    bench.run_to(PhaseName::Hold);
    let times = bench.times(wait);
    assert_eq!(times.len(), 2);
    let pause = times[1].saturating_duration_since(times[0]);
    assert!(pause >= ms(50), "{pause:?}");
}
