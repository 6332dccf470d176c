use std::sync::Arc;
use std::time::Duration;

use snapshot_prepare::cluster::StreamRequest;
use snapshot_prepare::error::ErrorKind;
use snapshot_prepare::machine::{Config, Notice};
use snapshot_prepare::region::StoreId;
use tokio::sync::Semaphore;

use crate::fake::{FakeCluster, Mood};
use crate::{config, preparer, preparer_with, until_no_task_is_left};

/// The prepare deadline passed; when a store never answered, the error says
/// that instead.
fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PrepareTimeout | ErrorKind::Unreachable)
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_hangs_suspends_nobody_and_does_not_outlive_the_run() {
    let cluster = FakeCluster::new(3, 30);
    cluster.store(2, |store| store.dial = Mood::Hangs);
    let error = preparer(&cluster).prepare().await.expect_err("no stream");
    assert!(is_timeout(error.kind()), "{error:?}");
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert_eq!(cluster.each(|store| store.renewals()), [0, 0, 0]);
    until_no_task_is_left().await;
    assert_eq!(cluster.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn dials_that_hang_do_not_pile_up() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(2, |store| store.dial = Mood::Hangs);
    let prepare = tokio::spawn(preparer(&cluster).prepare());
    let mut dials = 0;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(cluster.alive() <= 1, "{} are alive", cluster.alive());
        dials = cluster.store(2, |store| store.dials);
    }
    assert!(dials >= 3, "only {dials} dials");
    prepare.await.expect("no panic").expect_err("no stream");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_can_be_dialled_after_a_while_is() {
    let cluster = FakeCluster::new(3, 30);
    cluster.store(2, |store| store.dial = Mood::Fails);
    let prepare = tokio::spawn(preparer(&cluster).prepare());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.each(|store| store.renewals()), [0, 0, 0]);
    cluster.store(2, |store| store.dial = Mood::Good);
    let guard = prepare.await.expect("no panic").expect("held");
    guard.finish().await.expect("a good verdict");
}

#[tokio::test(start_paused = true)]
async fn listings_that_never_end_do_not_pile_up() {
    let cluster = FakeCluster::new(2, 300);
    for id in 1..=2 {
        cluster.store(id, |store| store.listing = Mood::Hangs);
    }
    let prepare = tokio::spawn(preparer(&cluster).prepare());
    cluster.until_each(|store| store.listings >= 3).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(cluster.alive() <= 2, "{} are alive", cluster.alive());
    prepare.await.expect("no panic").expect_err("no listing");
    until_no_task_is_left().await;
    assert_eq!(cluster.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn reads_that_hang_do_not_outlive_the_run() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(1, |store| store.reads = Mood::Hangs);
    let error = preparer(&cluster).prepare().await.expect_err("no proof");
    assert_eq!(error.kind(), ErrorKind::PrepareTimeout);
    assert_eq!(cluster.each(|store| store.finishes()), [1, 1]);
    until_no_task_is_left().await;
    assert_eq!(cluster.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_was_left_out_is_repeated_before_its_deadline() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(1, |store| store.short_reads = 2);
    let config = config();
    let deadline = config.read_timeout;
    let guard = tokio::time::timeout(deadline, preparer_with(&cluster, config).prepare())
        .await
        .expect("sooner than that")
        .expect("held");
    assert_eq!(cluster.store(1, |store| store.short_reads), 0);
    guard.finish().await.expect("a good verdict");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_is_a_failed_call() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(1, |store| store.dial = Mood::Panics);
    cluster.store(2, |store| store.listing = Mood::Panics);
    let prepare = tokio::spawn(preparer(&cluster).prepare());
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.store(1, |store| store.dial = Mood::Good);
    cluster.store(2, |store| store.listing = Mood::Good);
    let guard = prepare.await.expect("no panic").expect("held");
    guard.finish().await.expect("a good verdict");
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_panics_is_a_stream_that_ended() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(2, |store| store.send = Mood::Panics);
    let mut preparer = preparer(&cluster);
    let mut notices = preparer.notices();
    let prepare = tokio::spawn(preparer.prepare());
    let cause = loop {
        if let Notice::AttemptFailed { cause, .. } = notices.recv().await.expect("running") {
            break cause;
        }
    };
    assert_eq!(cause.store_id(), Some(StoreId(2)));
    cluster.store(2, |store| store.send = Mood::Good);
    let guard = prepare.await.expect("no panic").expect("held");
    assert!(guard.report().attempt > 1);
    guard.finish().await.expect("a good verdict");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_goes_on_without_an_end_does_not_put_off_the_deadline() {
    let cluster = FakeCluster::new(2, 20);
    cluster.store(1, |store| store.listing = Mood::Babbles);
    let config = Config {
        prepare_timeout: Duration::from_secs(5),
        ..config()
    };
    let error = preparer_with(&cluster, config)
        .prepare()
        .await
        .expect_err("no end");
    assert!(is_timeout(error.kind()), "{error:?}");
    until_no_task_is_left().await;
    assert_eq!(cluster.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_overtakes_the_waits_before_a_stuck_store() {
    let cluster = FakeCluster::new(1, 2000);
    let gate = Arc::new(Semaphore::new(2));
    cluster.store(1, |store| store.gate = Some(Arc::clone(&gate)));
    let config = Config {
        window: 2000,
        ..config()
    };
    let prepare = tokio::spawn(preparer_with(&cluster, config).prepare());
    // The first lease and the first part of the waits pass; the second part is
    // stuck when the renewal becomes due.
    cluster.until_each(|store| store.seen.len() == 2).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    gate.add_permits(1_000_000);
    let guard = prepare.await.expect("no panic").expect("held");
    let kinds: String = cluster.store(1, |store| {
        let kinds = store.seen.iter().map(|request| match request {
            StreamRequest::UpdateLease { .. } => 'L',
            StreamRequest::WaitApply { .. } => 'W',
            StreamRequest::Finish => 'F',
        });
        kinds.collect()
    });
    assert!(kinds.starts_with("LWWLWW"), "{kinds}");
    guard.finish().await.expect("a good verdict");
}

#[test]
fn without_a_runtime_the_error_says_so() {
    let preparer = preparer(&FakeCluster::new(1, 1));
    let mut prepare = std::pin::pin!(preparer.prepare());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match prepare.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.message().contains("runtime"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_before_anything_is_dialled() {
    use snapshot_prepare::driver::Preparer;
    let result = Preparer::builder(FakeCluster::new(1, 1))
        .config(Config {
            lease: Duration::from_secs(1),
            ..Config::default()
        })
        .build();
    assert_eq!(result.expect_err("refused").kind(), ErrorKind::Config);
}
