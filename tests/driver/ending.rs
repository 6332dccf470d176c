use std::sync::Arc;
use std::time::Duration;

use snapshot_prepare::cluster::StreamRequest;
use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::Notice;
use tokio::sync::Semaphore;

use crate::fake::{FakeCluster, FakeStore};
use crate::{preparer, until_no_task_is_left};

/// Waits, in a stage in which waits are not answered, until they were sent.
async fn until_waiting(cluster: &FakeCluster) {
    let is_wait = |request: &StreamRequest| matches!(request, StreamRequest::WaitApply { .. });
    cluster
        .until_each(|store| store.seen.iter().any(is_wait))
        .await;
}

fn cluster_that_keeps_us_waiting() -> FakeCluster {
    let cluster = FakeCluster::new(3, 30);
    for id in 1..=3 {
        cluster.store(id, |store| store.swallow_waits = true);
    }
    cluster
}

#[tokio::test(start_paused = true)]
async fn cancelling_while_preparing_releases_first() {
    let cluster = cluster_that_keeps_us_waiting();
    let preparer = preparer(&cluster);
    let canceller = preparer.canceller();
    let prepare = tokio::spawn(preparer.prepare());
    until_waiting(&cluster).await;
    canceller.cancel();
    let error = prepare.await.expect("no panic").expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(cluster.each(|store| store.finishes()), [1, 1, 1]);
    let report = error.report().expect("leases had been taken");
    assert_eq!(report.released().count(), 3);
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_before_it_starts_disturbs_nobody() {
    let cluster = FakeCluster::new(3, 30);
    let preparer = preparer(&cluster);
    preparer.canceller().cancel();
    let error = preparer.prepare().await.expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(
        cluster
            .each(|store| store.seen.is_empty())
            .iter()
            .all(|is| *is)
    );
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_prepare_future_releases_in_the_background() {
    let cluster = cluster_that_keeps_us_waiting();
    tokio::select! {
        _ = preparer(&cluster).prepare() => panic!("nothing is answered"),
        () = until_waiting(&cluster) => {}
    }
    let released = cluster.until_each(|store| store.finishes() == 1);
    tokio::time::timeout(Duration::from_secs(1), released)
        .await
        .expect("long before the prepare deadline");
    until_no_task_is_left().await;
    assert!(
        cluster
            .each(|store| !store.is_suspended())
            .iter()
            .all(|is| *is)
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_guard_releases_in_the_background() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    let lost = guard.lost();
    drop(guard);
    cluster.until_each(|store| store.finishes() == 1).await;
    assert_eq!(lost.await.kind(), ErrorKind::Cancelled);
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn aborting_waits_for_the_release() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    let report = guard.abort().await;
    assert_eq!(report.released().count(), 3);
    assert_eq!(cluster.each(|store| store.finishes()), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_in_the_hold_ends_it() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    guard.canceller().cancel();
    let at_once = guard.ensure_valid().expect_err("cancelled");
    assert_eq!(at_once.kind(), ErrorKind::Cancelled);
    assert_eq!(guard.lost().await.kind(), ErrorKind::Cancelled);
    let error = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(error.report().released().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_nobody_waits_for_still_releases() {
    let cluster = FakeCluster::new(3, 30);
    let mut preparer = preparer(&cluster);
    let mut notices = preparer.notices();
    let guard = preparer.prepare().await.expect("held");
    tokio::time::timeout(Duration::ZERO, guard.finish())
        .await
        .expect_err("not that fast");
    cluster.until_each(|store| store.finishes() == 1).await;
    until_no_task_is_left().await;
    let report = loop {
        if let Notice::Closed(report) = notices.recv().await.expect("told before the end") {
            break report;
        }
    };
    assert_eq!((report.released().count(), report.error), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_dies_while_finishing_spoils_the_verdict() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    let gate = Arc::new(Semaphore::new(0));
    cluster.store(3, |store| store.gate = Some(gate));
    let finish = tokio::spawn(guard.finish());
    cluster
        .until_each(|store| store.finishes() == 1 || store.gate.is_some())
        .await;
    cluster.store(3, |store| store.end(FailureKind::Unavailable));
    let error = finish.await.expect("no panic").expect_err("a bad verdict");
    assert_eq!(error.report().released().count(), 2);
    assert_eq!(error.report().unreleased().count(), 1);
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_cancelled_as_it_begins_is_not_handed_out() {
    let cluster = FakeCluster::new(3, 30);
    let mut preparer = preparer(&cluster);
    let canceller = preparer.canceller();
    let mut notices = preparer.notices();
    let mut prepare = std::pin::pin!(preparer.prepare());
    loop {
        tokio::select! {
            biased;
            notice = notices.recv() => {
                if matches!(notice, Some(Notice::Held(_))) {
                    break;
                }
            }
            _ = &mut prepare => panic!("the notice comes first"),
        }
    }
    canceller.cancel();
    let error = prepare.await.expect_err("cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(cluster.each(FakeStore::finishes), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_right_before_the_end_spoils_the_verdict() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    guard.canceller().cancel();
    let error = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn the_loss_is_told_before_the_release_is_over() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    cluster.store(3, |store| store.gate = Some(Arc::new(Semaphore::new(0))));
    guard.canceller().cancel();
    let lost = tokio::time::timeout(Duration::from_secs(1), guard.lost())
        .await
        .expect("told before the stuck store is given up");
    assert_eq!(lost.kind(), ErrorKind::Cancelled);
    let report = guard.abort().await;
    assert_eq!(report.released().count(), 2);
}
