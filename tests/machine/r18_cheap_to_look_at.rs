//! R18: keys stay hidden, and what is told is bounded.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Event, Notice, Proof};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

/// Checks that no key shows: every key of the cluster starts with `secret`.
#[track_caller]
fn hides_keys(text: &str) {
    let lower = text.to_lowercase();
    // As text, as hex, and as a list of bytes.
    for shown in ["secret", "736563726574", "115, 101, 99"] {
        assert!(!lower.contains(shown), "{shown} shows in {text}");
    }
}

fn all_that_is_told(bench: &Bench) {
    let machine = &bench.machine;
    hides_keys(&machine.waiting_for(1_000));
    hides_keys(&format!("{:?}", machine.progress()));
    hides_keys(&format!("{machine:?}"));
    if let Some(outcome) = machine.outcome() {
        hides_keys(&format!("{outcome:?}"));
        if let Some(error) = outcome.error() {
            hides_keys(&format!("{error} {error:?} {error:#?}"));
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                hides_keys(&format!("{cause} {cause:?}"));
                source = cause.source();
            }
        }
        hides_keys(&format!("{:?}", bench.report()));
    }
    for (_, line) in &bench.log {
        hides_keys(&format!("{line:?}"));
    }
}

#[test]
fn r18_keys_are_hidden_in_all_that_a_failed_run_tells() {
    let mut bench = Bench::new();
    bench.cluster.region(103).leader = None;
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::EpochNotMatch),
    );
    bench.when(|ask| ask.is_read() && ask.about(104), || Act::Never);
    bench.run_for(secs(50));
    all_that_is_told(&bench);
    bench.run_to_end();
    all_that_is_told(&bench);
}

#[test]
fn r18_keys_are_hidden_in_all_that_a_difference_tells() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::WaitApply);
    bench.on(|ask| {
        if !(ask.is_claims() && ask.at(3)) {
            return None;
        }
        let mut cluster = Cluster::new(3, 6);
        let mut claims = cluster.claims_of(StoreId(3));
        claims.push(cluster.region(102).claim());
        Some(Act::Say(vec![(ms(1), ask.claims(claims, true))]))
    });
    bench.run_to_end();
    all_that_is_told(&bench);
}

#[test]
fn r18_keys_are_hidden_in_all_that_a_good_run_tells() {
    for proof in [Proof::Read, Proof::Claims] {
        let mut bench = Bench::with(3, 6, |config| config.proof = proof);
        bench.run_to(PhaseName::Hold);
        bench.run_for(secs(100));
        bench.finish();
        all_that_is_told(&bench);
    }
}

fn summaries(bench: &Bench) -> Vec<(snapshot_prepare::time::Timestamp, String)> {
    bench
        .notices()
        .filter_map(|(at, notice)| match notice {
            Notice::StillWaiting { summary } => Some((at, summary.clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn r18_what_is_waited_for_is_told_after_a_quiet_time_and_in_bounds() {
    let mut bench = Bench::with(3, 120, |_| {});
    bench.when(Ask::is_wait, || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(120));
    let told = summaries(&bench);
    assert!(!told.is_empty());
    for (_, summary) in &told {
        assert!(summary.len() < 2_000, "{} bytes", summary.len());
    }
    for pair in told.windows(2) {
        let pause = pair[1].0.saturating_duration_since(pair[0].0);
        assert!(pause >= secs(10), "{pause:?}");
    }
    assert!(bench.machine.waiting_for(5).len() < 2_000);
}

#[test]
fn r18_a_run_that_moves_tells_nothing_of_waiting() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    bench.run_for(secs(600));
    assert_eq!(summaries(&bench), []);
}

#[test]
fn r18_notices_are_not_one_a_region() {
    let mut bench = Bench::with(3, 90, |_| {});
    bench.first(90, Ask::is_wait, || {
        Act::Refuse(RegionErrorKind::StaleCommand)
    });
    bench.run_to(PhaseName::Hold);
    assert!(bench.notices().count() < 20, "{}", bench.notices().count());
}

#[test]
fn r18_progress_says_how_far_the_run_is() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_wait() && ask.about(101), || Act::Never);
    assert_eq!(bench.machine.progress().regions, None);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(secs(1));
    let progress = bench.machine.progress();
    assert_eq!(progress.phase, PhaseName::WaitApply);
    assert_eq!((progress.stores, progress.stores_open), (3, 3));
    assert_eq!(progress.stores_leased, 3);
    assert_eq!(progress.regions, Some(6));
    assert_eq!(progress.regions_confirmed, 5);
    assert_eq!(progress.in_flight, 1);
    assert_eq!(progress.ignored_answers, 0);
    bench.tell(Event::LockLost);
    bench.run_to_end();
    assert_eq!(bench.machine.progress().phase, PhaseName::Closed);
}

#[test]
fn r18_a_store_that_cannot_be_dialed_is_told_by_name() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_open() && ask.at(2),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_for(secs(40));
    let told = summaries(&bench);
    assert!(!told.is_empty());
    assert!(told[0].1.contains("store 2"), "{}", told[0].1);
}
