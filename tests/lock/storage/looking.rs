//! What a look at the lock's family takes, and objects that go between their being
//! listed and their being read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use snapshot_prepare::lock::{HolderKind, LockErrorKind, RunLock};

use super::faulty::{Fault, Faulty, Shared, all, lock_on};
use super::support::{OTHER, PATH, config, delete, write};

/// Late enough for what is spawned to happen before.
const LATE: Option<Fault> = Some(Fault::Late(Duration::from_millis(1)));

async fn taken_by_another() -> (Arc<Faulty>, Arc<dyn ObjectStore>) {
    let store = Faulty::new(|_| None);
    let other: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    write(&other, PATH, OTHER).await;
    (store, other)
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_gone_when_it_is_read_is_in_nobodys_way() {
    let (store, other) = taken_by_another().await;
    let mut is_gone = false;
    store.set(move |call| {
        if call != "read" || is_gone {
            return None;
        }
        is_gone = true;
        let other = Arc::clone(&other);
        tokio::spawn(async move { delete(&other, PATH).await });
        LATE
    });
    let guard = lock_on(&store, config()).acquire(Duration::ZERO).await;
    let guard = guard.expect("it is free");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

/// It may have become something that was not listed, so it counts in the end.
#[tokio::test(start_paused = true)]
async fn a_lock_that_comes_and_goes_is_in_the_way() {
    let (store, other) = taken_by_another().await;
    store.set(move |call| {
        let other = Arc::clone(&other);
        match call {
            "list" => tokio::spawn(async move { write(&other, PATH, OTHER).await }),
            "read" => tokio::spawn(async move { delete(&other, PATH).await }),
            _ => return None,
        };
        LATE
    });
    let error = lock_on(&store, config()).acquire(Duration::ZERO).await;
    let error = error.expect_err("somebody is there");
    assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
    assert_eq!(error.holders().listed[0].location, PATH);
}

/// Counts the calls of this name.
fn counting(name: &'static str) -> (Arc<Faulty>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let store = Faulty::new(move |call| {
        count.fetch_add(usize::from(call == name), Ordering::Relaxed);
        None
    });
    (store, calls)
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_meets_nobody_looks_three_times() {
    let (store, lists) = counting("list");
    let guard = lock_on(&store, config()).acquire(Duration::ZERO).await;
    drop(guard.expect("free"));
    assert_eq!(lists.load(Ordering::Relaxed), 3);
}

/// Announced twice, to see whether the second is refused.
#[tokio::test(start_paused = true)]
async fn what_the_store_can_do_is_found_out_once() {
    let (store, announcements) = counting("create intent");
    let lock = lock_on(&store, config());
    for expected in [2, 1, 1] {
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        assert!(guard.release().await.expect("removed").is_clean());
        assert_eq!(announcements.swap(0, Ordering::Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_only_the_first_are_read_and_all_are_counted() {
    let (store, reads) = counting("read");
    let other: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    for number in 0..12 {
        write(&other, &format!("{PATH}.{number:032x}"), OTHER).await;
    }
    let lock = lock_on(&store, config());
    let error = lock.acquire(Duration::ZERO).await.expect_err("it is held");
    assert_eq!(error.holders().total, 12);
    assert_eq!(reads.swap(0, Ordering::Relaxed), 8);
    assert_eq!(lock.status().await.expect("readable").total, 12);
    assert_eq!(reads.load(Ordering::Relaxed), 8);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_lock_is_not_read() {
    let (store, reads) = counting("read");
    let other: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    let intent = format!("{PATH}.INTENT.00000000000000000000000000000001");
    write(&other, &intent, "").await;
    write(&other, &format!("{PATH}.bak"), OTHER).await;
    let status = lock_on(&store, config()).status().await.expect("readable");
    let kinds: Vec<_> = status.listed.iter().map(|holder| holder.kind).collect();
    assert_eq!(kinds, [HolderKind::Intent, HolderKind::Unknown]);
    assert!(status.listed.iter().all(|holder| holder.host.is_none()));
    assert_eq!(reads.load(Ordering::Relaxed), 0);
}
