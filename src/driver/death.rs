//! What the owner sees when the loop dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::board::Board;
use super::guard::HoldGuard;
use super::run::{Setup, run};
use super::signal::Signals;
use super::status::{Handle, Status, ValidUntil};
use crate::clock::{Clock, Ticker};
use crate::cluster::{Batches, ClusterClient, PrepareReceiver, PrepareSender};
use crate::cluster::{StreamAnswer, StreamRequest};
use crate::error::{ErrorKind, Failure};
use crate::machine::Config;
use crate::progress::{PrepareReport, ReleaseState, Work};
use crate::range::KeyRange;
use crate::region::{Claim, ReadAnswer, ReadTarget, ScannedRegion, Store, StoreId};
use crate::time::Timestamp;

/// A cluster that never answers.
struct Silent;

/// What it never answers with.
enum Never {}

impl ClusterClient for Silent {
    type Claims = Never;
    type Reads = Never;
    type Sender = Never;
    type Receiver = Never;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        std::future::pending().await
    }

    async fn scan_regions(&self, _: KeyRange, _: u32) -> Result<Vec<ScannedRegion>, Failure> {
        std::future::pending().await
    }

    async fn list_claims(&self, _: &Store) -> Result<Never, Failure> {
        std::future::pending().await
    }

    async fn leader_reads(&self, _: &Store, _: Vec<ReadTarget>) -> Result<Never, Failure> {
        std::future::pending().await
    }

    async fn open_stream(&self, _: &Store) -> Result<(Never, Never), Failure> {
        std::future::pending().await
    }
}

impl Batches<Claim> for Never {
    async fn next(&mut self) -> Option<Result<Vec<Claim>, Failure>> {
        match *self {}
    }
}

impl Batches<ReadAnswer> for Never {
    async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        match *self {}
    }
}

impl PrepareSender for Never {
    async fn send(&mut self, _: StreamRequest) -> Result<(), Failure> {
        match *self {}
    }
}

impl PrepareReceiver for Never {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        match *self {}
    }
}

/// Returns a loop that has not started yet and its owner's end, as if the hold
/// had begun.
fn held(clock: Ticker) -> (Setup<Silent>, HoldGuard) {
    let report = Arc::new(PrepareReport {
        stores: vec![(StoreId(4), "store-4:20160".to_owned())],
        regions: 1,
        proof: "read",
        attempt: 1,
        foreign_leases: Vec::new(),
        prepare_time: Duration::ZERO,
        suspended_at: Timestamp::ZERO,
        held_at: Timestamp::ZERO,
        valid_until: Timestamp::ZERO,
        slowest_regions: Vec::new(),
        slowest_stores: Vec::new(),
        phases: Vec::new(),
        work: Work::default(),
    });
    let config = Config::default();
    let status = watch::Sender::new(Status {
        held: Some(Arc::clone(&report)),
        ..Status::default()
    });
    let signals = Arc::new(Signals::default());
    let valid_until = Arc::new(ValidUntil::default());
    valid_until.set(Some(Timestamp::MAX));
    let handle = Handle {
        status: status.subscribe(),
        signals: Arc::clone(&signals),
        valid_until: Arc::clone(&valid_until),
        clock: Clock::Tokio.start(),
        lease: config.lease,
    };
    let setup = Setup {
        cluster: Arc::new(Silent),
        config,
        clock,
        signals,
        status,
        valid_until,
        notices: Vec::new(),
        board: Arc::new(Board::default()),
        lock_lost: None,
    };
    (setup, HoldGuard::new(handle, report))
}

/// Is asked once, when it is started, before it breaks.
fn breaking() -> Duration {
    static WAS_ASKED: AtomicBool = AtomicBool::new(false);
    assert!(
        !WAS_ASKED.swap(true, Ordering::Relaxed),
        "the clock is broken on purpose"
    );
    Duration::ZERO
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_an_internal_error_for_everyone_who_waits() {
    let (setup, guard) = held(Clock::Custom(breaking).start());
    let board = Arc::clone(&setup.board);
    guard.ensure_valid().expect("nothing happened yet");
    let early = tokio::spawn(guard.lost());
    tokio::task::yield_now().await;
    run(setup).await;

    let error = guard.lost().await;
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("broken on purpose"), "{error}");
    assert_eq!(early.await.expect("no panic"), error);
    assert_eq!(guard.ensure_valid(), Err(error.clone()));
    let finish = guard.finish().await.expect_err("a bad verdict");
    assert_eq!(*finish.error(), error);
    let lease = Config::default().lease;
    let until = finish.report().closed_at + lease;
    assert_eq!(
        finish.report().stores,
        [(StoreId(4), ReleaseState::Unknown { until })]
    );
    // The reporter ends as well.
    board.report(watch::Sender::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_dropped_is_an_internal_error_for_everyone_who_waits() {
    let (setup, guard) = held(Clock::Tokio.start());
    let early = tokio::spawn(guard.lost());
    tokio::task::yield_now().await;
    drop(run(setup));
    assert_eq!(early.await.expect("no panic").kind(), ErrorKind::Internal);
    assert_eq!(
        guard.ensure_valid().expect_err("gone").kind(),
        ErrorKind::Internal
    );
    assert_eq!(guard.lost().await.kind(), ErrorKind::Internal);
    let report = guard.abort().await;
    assert_eq!(
        report.error.map(|error| error.kind()),
        Some(ErrorKind::Internal)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_counts_before_the_loop_has_heard_of_it() {
    let (setup, guard) = held(Clock::Tokio.start());
    guard.ensure_valid().expect("nothing happened yet");
    setup.signals.lock_lost();
    assert_eq!(
        guard.ensure_valid().expect_err("lost").kind(),
        ErrorKind::LockLost
    );
    assert_eq!(guard.remaining(), Duration::ZERO);
}
