//! R1: no lease leaves before every store of the list has an open stream.

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{Event, Outcome};
use snapshot_prepare::progress::PhaseName;

use crate::bench::*;
use crate::cluster::*;

#[test]
fn r01_a_good_cluster_is_held_and_finished() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() < secs(1), "{:?}", bench.elapsed());
    bench.run_for(secs(600));
    assert_eq!(bench.finish(), Outcome::Finished);
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r01_no_lease_before_the_last_stream_is_open_and_settled() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_open() && ask.at(2), || Act::After(secs(3)));
    bench.run_to(PhaseName::Suspend);
    let opened = bench.times(|ask| ask.is_open() && ask.at(2))[0] + secs(3);
    let leases = bench.times(Ask::is_lease);
    assert_eq!(leases.len(), 3);
    for sent in leases {
        assert_eq!(sent, opened + ms(200), "all at once, when the last settled");
    }
}

#[test]
fn r01_the_settle_time_is_counted_from_the_opening() {
    let mut bench = Bench::with(1, 1, |config| config.settle = secs(2));
    bench.run_to(PhaseName::Suspend);
    let opened = bench.heard(|event| matches!(event, Event::StreamOpened { .. }))[0];
    assert_eq!(bench.times(Ask::is_lease), [opened + secs(2)]);
}

#[test]
fn r01_a_stream_that_ends_while_it_settles_was_not_open() {
    let mut bench = Bench::new();
    bench.on({
        let mut first = true;
        move |ask| match ask {
            Ask::Open { stream, .. } if ask.at(3) && first => {
                first = false;
                Some(Act::Say(vec![
                    (ms(1), Event::StreamOpened { stream: *stream }),
                    (ms(150), ask.failed(failure(FailureKind::Unavailable))),
                ]))
            }
            _ => None,
        }
    });
    bench.run_to(PhaseName::Hold);
    let opens = bench.times(|ask| ask.is_open() && ask.at(3));
    assert_eq!(opens.len(), 2);
    assert_eq!(bench.times(Ask::is_lease)[0], opens[1] + LATENCY + ms(200));
    assert_eq!(
        bench.attempt(),
        1,
        "nobody was leased, so nothing is in doubt"
    );
}

#[test]
fn r01_a_stream_that_ends_while_another_is_dialed_is_opened_again() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_open() && ask.at(2), || Act::After(secs(5)));
    let open = bench.run_to_ask("store 1 is dialed", |ask| ask.is_open() && ask.at(1));
    bench.run_for(secs(3));
    bench.tell(open.failed(failure(FailureKind::Transport)));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(1)), 2);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 1);
}

#[test]
fn r01_a_store_that_cannot_be_dialed_means_that_nobody_is_leased() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_open() && ask.at(2),
        || Act::Fail(FailureKind::Unavailable),
    );
    let outcome = bench.run_to_end();
    assert_eq!(bench.count(Ask::is_lease), 0);
    assert_eq!(bench.count(Ask::is_finish), 0);
    assert_eq!(
        bench.elapsed(),
        secs(300),
        "the prepare deadline is the budget"
    );
    let error = failed(&outcome, ErrorKind::Unreachable);
    let text = error.to_string();
    assert!(text.contains("store 2"), "{text}");
    assert!(text.contains("store-2:20160"), "{text}");
    assert!(text.contains("the store said Unavailable"), "{text}");
    assert!(!text.contains("store-1:20160"), "{text}");
}

#[test]
fn r01_dials_are_repeated_with_backoff_until_the_deadline() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_open() && ask.at(2),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_to_end();
    let dials = bench.times(|ask| ask.is_open() && ask.at(2));
    assert!((55..300).contains(&dials.len()), "{} dials", dials.len());
    for pair in dials.windows(2) {
        let pause = pair[1].saturating_duration_since(pair[0]);
        assert!(pause >= ms(50) && pause <= ms(5_010), "{pause:?}");
    }
    let end = bench.started + secs(300);
    assert!(*dials.last().expect("many") + secs(6) > end, "to the end");
}

#[test]
fn r01_the_other_stores_wait_with_their_streams_open() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_open() && ask.at(2),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_for(secs(60));
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(1)), 1);
    assert_eq!(bench.phase(), PhaseName::Connect);
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(1)), 1);
}

#[test]
fn r01_a_dial_that_hangs_is_given_up_and_repeated() {
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_open() && ask.at(2), || Act::Never);
    bench.run_to(PhaseName::Hold);
    let dials = bench.times(|ask| ask.is_open() && ask.at(2));
    assert_eq!(dials.len(), 2);
    let pause = dials[1].saturating_duration_since(dials[0]);
    assert!(pause >= secs(10) && pause < secs(11), "{pause:?}");
    assert_eq!(bench.count(|ask| ask.is_close() && ask.at(2)), 1);
}

#[test]
fn r01_the_address_is_read_anew_for_each_redial() {
    let mut bench = Bench::new();
    bench.when(
        |ask| matches!(ask, Ask::Open { store, .. } if store.address == "store-2:20160"),
        || Act::Fail(FailureKind::Unavailable),
    );
    bench.run_for(secs(20));
    assert_eq!(bench.phase(), PhaseName::Connect);
    bench.cluster.store(2).address = "moved:1".to_owned();
    bench.run_to(PhaseName::Hold);
    let last = bench.last(|ask| ask.is_open() && ask.at(2));
    let Some(Ask::Open { store, .. }) = last else {
        panic!("dialed");
    };
    assert_eq!(store.address, "moved:1");
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.stores[1].1, "moved:1");
}

#[test]
fn r01_every_store_is_probed_once_before_its_stream_is_opened() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Suspend);
    for id in 1..=3 {
        let opens = bench.times(|ask| ask.is_open() && ask.at(id));
        let listings = bench.times(|ask| ask.is_claims() && ask.at(id));
        let probes = listings.iter().filter(|at| **at <= opens[0]).count();
        assert_eq!(probes, 1);
        assert!(listings[0] + LATENCY <= opens[0], "probed before");
    }
}

#[test]
fn r01_an_unsupported_probe_ends_the_run_before_any_stream_to_it() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_claims() && ask.at(2),
        || Act::Fail(FailureKind::Unsupported),
    );
    let error = failed(&bench.run_to_end(), ErrorKind::Unsupported);
    assert_eq!(error.store_id().map(|id| id.0), Some(2));
    assert_eq!(bench.count(Ask::is_lease), 0);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 0);
    assert!(bench.elapsed() < secs(1));
}

#[test]
fn r01_a_probe_that_fails_or_hangs_is_repeated() {
    for kind in [FailureKind::Unavailable, FailureKind::Other] {
        let mut bench = Bench::new();
        bench.first(
            3,
            |ask| ask.is_claims() && ask.at(2),
            move || Act::Fail(kind),
        );
        bench.run_to(PhaseName::Hold);
        assert_eq!(bench.attempt(), 1);
    }
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_claims() && ask.at(2), || Act::Never);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() > secs(10) && bench.elapsed() < secs(12));
    assert_eq!(bench.attempt(), 1);
}

#[test]
fn r01_a_store_list_that_fails_or_hangs_is_repeated() {
    let mut bench = Bench::new();
    bench.first(2, Ask::is_stores, || Act::Fail(FailureKind::Unavailable));
    bench.run_to(PhaseName::Hold);
    let mut bench = Bench::new();
    bench.first(1, Ask::is_stores, || Act::Never);
    bench.run_to(PhaseName::Hold);
    assert!(bench.elapsed() > secs(10) && bench.elapsed() < secs(12));
}

#[test]
fn r01_without_a_store_list_the_deadline_says_so() {
    let mut bench = Bench::new();
    bench.when(Ask::is_stores, || Act::Fail(FailureKind::Unavailable));
    let outcome = bench.run_to_end();
    assert_eq!(bench.elapsed(), secs(300));
    let error = failed(&outcome, ErrorKind::Unreachable);
    let text = error.to_string();
    assert!(text.contains("PD"), "{text}");
    assert!(text.contains("the store said Unavailable"), "{text}");
    assert_eq!(bench.count(Ask::is_open), 0);
}

#[test]
fn r01_a_store_list_without_stores_is_never_held() {
    let mut cluster = Cluster::new(3, 6);
    cluster.stores.clear();
    let mut bench = Bench::over(cluster, Default::default());
    let outcome = bench.run_to_end();
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}
