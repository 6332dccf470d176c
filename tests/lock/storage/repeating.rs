//! Calls that are repeated while the storage is busy: how often, and until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use snapshot_prepare::lock::{LockConfig, LockErrorKind, RunLock};
use tokio::time::Instant;

use super::faulty::{Fault, Faulty, all, lock_on};
use super::support::{PATH, config};

/// Pauses of 0.1, 0.2, 0.4 s and so on within the 10 s of a call: asked at 0, 0.1,
/// 0.3, 0.7, 1.5, 3.1 and 6.3 s. The next would come at 12.7 s.
fn steady() -> LockConfig {
    let mut config = config();
    config.backoff_min = Duration::from_millis(100);
    config.call_timeout = Duration::from_secs(10);
    config
}

/// A store at which the calls of this name meet the fault, and how many there were.
fn counting(name: &'static str, fault: Fault) -> (Arc<Faulty>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let store = Faulty::new(move |call| {
        count.fetch_add(usize::from(call == name), Ordering::Relaxed);
        (call == name).then_some(fault)
    });
    (store, calls)
}

#[tokio::test(start_paused = true)]
async fn a_busy_storage_is_asked_again_ever_more_seldom_until_the_time_is_up() {
    for call in ["list", "create intent", "create lock", "delete intent"] {
        let (store, calls) = counting(call, Fault::Busy);
        let begun = Instant::now();
        let acquired = lock_on(&store, steady()).acquire(Duration::ZERO).await;
        assert_eq!(begun.elapsed().as_millis() / 100, 63, "{call}");
        assert_eq!(calls.load(Ordering::Relaxed), 7, "{call}");
        match acquired {
            // Its announcement is left for later.
            Ok(_) => assert_eq!((call, all(&store).await.len()), ("delete intent", 2)),
            Err(error) => assert_eq!(error.kind(), LockErrorKind::Throttled, "{call}: {error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_asked_once() {
    for call in ["list", "create intent", "create lock", "delete intent"] {
        let (store, calls) = counting(call, Fault::Denied);
        let begun = Instant::now();
        let acquired = lock_on(&store, steady()).acquire(Duration::ZERO).await;
        assert!(begun.elapsed() < Duration::from_millis(100), "{call}");
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{call}");
        assert_eq!(acquired.is_ok(), call == "delete intent", "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_storage_said_tells_more_than_its_silence_afterwards() {
    for (first, kind) in [
        (Some(Fault::Busy), LockErrorKind::Throttled),
        (None, LockErrorKind::Unreachable),
    ] {
        let mut first = first;
        let store = Faulty::new(move |call| match call {
            "list" => first.take().or(Some(Fault::ActsAndHangs)),
            _ => None,
        });
        let begun = Instant::now();
        let error = lock_on(&store, steady()).status().await;
        let error = error.expect_err("no answer");
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(begun.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_is_given_up_when_its_time_is_up() {
    let (store, calls) = counting("create intent", Fault::ActsAndHangs);
    let begun = Instant::now();
    let error = lock_on(&store, steady()).acquire(Duration::ZERO).await;
    let error = error.expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable, "{error}");
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // It had acted, and is withdrawn.
    assert_eq!(all(&store).await, [] as [&str; 0]);
    let (store, _) = counting("delete lock", Fault::ActsAndHangs);
    let guard = lock_on(&store, steady()).acquire(Duration::ZERO).await;
    let begun = Instant::now();
    guard.expect("free").release().await.expect_err("no answer");
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_ne!(all(&store).await, [PATH]);
}
