use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use snapshot_prepare::cluster::StreamRequest;
use snapshot_prepare::driver::{Clock, Preparer};
use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::Notice;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::StoreId;
use tokio::time::Instant;

use crate::fake::FakeCluster;
use crate::{config, preparer, until_no_task_is_left};

#[tokio::test(start_paused = true)]
async fn a_hold_that_lasts_ends_with_a_good_verdict() {
    let cluster = FakeCluster::new(3, 100);
    let mut preparer = preparer(&cluster);
    let progress = preparer.progress();
    let mut notices = preparer.notices();
    let guard = preparer.prepare().await.expect("held");
    assert_eq!(guard.report().regions, 100);
    assert_eq!(guard.report().stores.len(), 3);
    assert!(
        cluster
            .each(|store| store.is_suspended())
            .iter()
            .all(|is| *is)
    );

    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        guard.ensure_valid().expect("renewed in time");
        assert!(guard.remaining() > Duration::from_secs(10));
    }
    assert_eq!(progress.borrow().phase, PhaseName::Hold);
    assert_eq!(progress.borrow().regions_confirmed, 100);
    let report = guard.finish().await.expect("a good verdict");
    assert_eq!(report.released().count(), 3);
    assert_eq!(report.unreleased().count(), 0);

    for seen in cluster.each(|store| store.seen.clone()) {
        assert_eq!(
            seen.first(),
            Some(&StreamRequest::UpdateLease { seconds: 20 })
        );
        assert_eq!(seen.last(), Some(&StreamRequest::Finish));
    }
    until_no_task_is_left().await;
    assert_eq!(progress.borrow().phase, PhaseName::Closed);
    let mut phases = Vec::new();
    while let Some(notice) = notices.recv().await {
        if let Notice::PhaseEntered { phase, .. } = notice {
            phases.push(phase);
        }
    }
    assert_eq!(
        phases,
        [
            PhaseName::Connect,
            PhaseName::Suspend,
            PhaseName::WaitApply,
            PhaseName::Verify,
            PhaseName::Hold,
            PhaseName::Release,
            PhaseName::Closed,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_dies_in_the_hold_loses_it_for_good() {
    let cluster = FakeCluster::new(3, 30);
    let guard = preparer(&cluster).prepare().await.expect("held");
    let early = tokio::spawn(guard.lost());
    cluster.store(2, |store| store.end(FailureKind::Unavailable));

    let lost = guard.lost().await;
    assert_eq!(lost.store_id(), Some(StoreId(2)));
    assert_eq!(early.await.expect("no panic"), lost);
    assert_eq!(guard.lost().await, lost, "a later caller gets the same");
    assert_eq!(guard.ensure_valid(), Err(lost.clone()));
    assert_eq!(guard.remaining(), Duration::ZERO);

    let error = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(*error.error(), lost);
    let left: Vec<_> = error.report().unreleased().map(|(id, _)| id).collect();
    assert_eq!(left, [StoreId(2)]);
    assert_eq!(cluster.each(|store| store.finishes()), [1, 0, 1]);
    until_no_task_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_is_lost_by_the_own_clock() {
    let cluster = FakeCluster::new(2, 10);
    let guard = preparer(&cluster).prepare().await.expect("held");
    cluster.store(1, |store| store.swallow_renewals = true);
    let until = guard.valid_until();
    let lost = guard.lost().await;
    assert_eq!(lost.kind(), ErrorKind::LeaseLost);
    assert_eq!(lost.store_id(), Some(StoreId(1)));
    assert!(guard.report().valid_until <= until);
    let error = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_a_hold_that_ends_well_hears_nothing() {
    let cluster = FakeCluster::new(1, 1);
    let guard = preparer(&cluster).prepare().await.expect("held");
    let lost = guard.lost();
    guard.finish().await.expect("a good verdict");
    tokio::time::timeout(Duration::from_secs(3600), lost)
        .await
        .expect_err("not lost");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_ends_the_hold() {
    let cluster = FakeCluster::new(2, 10);
    let (lose, lost) = tokio::sync::oneshot::channel::<()>();
    let preparer = Preparer::builder(cluster.clone())
        .config(config())
        .clock(Clock::Tokio)
        .lock_lost(async move {
            let _ = lost.await;
        })
        .build()
        .expect("a sound configuration");
    let guard = preparer.prepare().await.expect("held");
    lose.send(()).expect("listening");
    assert_eq!(guard.lost().await.kind(), ErrorKind::LockLost);
    let error = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(error.kind(), ErrorKind::LockLost);
    assert_eq!(cluster.each(|store| store.finishes()), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_the_lock_that_panics_cannot_vouch_for_it() {
    let cluster = FakeCluster::new(1, 1);
    let preparer = Preparer::builder(cluster.clone())
        .config(config())
        .clock(Clock::Tokio)
        .lock_lost(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            panic!("the watcher panics on purpose");
        })
        .build()
        .expect("a sound configuration");
    let guard = preparer.prepare().await.expect("held");
    assert_eq!(guard.lost().await.kind(), ErrorKind::LockLost);
}

#[tokio::test(start_paused = true)]
async fn a_lease_answer_that_nobody_asked_for_is_not_trusted() {
    let cluster = FakeCluster::new(2, 10);
    let guard = preparer(&cluster).prepare().await.expect("held");
    cluster.store(2, |store| store.babble());
    assert_eq!(guard.lost().await.store_id(), Some(StoreId(2)));
    guard.finish().await.expect_err("a bad verdict");
}

/// What a suspended computer's clock is ahead of its timers, in seconds.
static SLEPT: AtomicU64 = AtomicU64::new(0);

/// A clock that goes on while the computer is suspended, unlike tokio's.
fn clock_that_goes_on() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed() + Duration::from_secs(SLEPT.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn a_computer_that_was_suspended_notices_soon_after_it_wakes() {
    let cluster = FakeCluster::new(2, 10);
    let preparer = Preparer::builder(cluster.clone())
        .config(config())
        .clock(Clock::Custom(clock_that_goes_on))
        .build()
        .expect("a sound configuration");
    let guard = preparer.prepare().await.expect("held");
    tokio::time::sleep(Duration::from_millis(500)).await;
    SLEPT.store(19, Ordering::SeqCst);

    let at_once = guard.ensure_valid().expect_err("slept for too long");
    assert_eq!(at_once.kind(), ErrorKind::LeaseLost);
    assert_eq!(guard.remaining(), Duration::ZERO);
    // The next renewal is due in 4.5 s; nobody waits for that.
    let lost = tokio::time::timeout(Duration::from_secs(1), guard.lost())
        .await
        .expect("noticed soon");
    assert_eq!(lost.kind(), ErrorKind::LeaseLost);
    guard.finish().await.expect_err("a bad verdict");
}
