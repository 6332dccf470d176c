//! Writes of which it is not known whether they acted, and those of which it is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use snapshot_prepare::lock::{LockErrorKind, Release, RunLock};

use super::faulty::{Fault, Faulty, Shared, all, lock_on};
use super::support::{PATH, config, delete};

/// The first calls of this name meet these faults, the later ones none.
fn in_turn(name: &'static str, faults: &[Fault]) -> impl FnMut(&str) -> Option<Fault> + Send {
    let mut left: VecDeque<_> = faults.iter().copied().collect();
    move |call| if call == name { left.pop_front() } else { None }
}

#[tokio::test(start_paused = true)]
async fn a_write_in_doubt_is_read_back_whatever_its_repetition_is_told() {
    let store = Faulty::new(in_turn(
        "create lock",
        &[Fault::ActsAndFails, Fault::Denied],
    ));
    let guard = lock_on(&store, config()).acquire(Duration::ZERO).await;
    let guard = guard.expect("the first had acted");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_known_to_have_failed_is_not_looked_for() {
    for (fault, kind) in [
        (Fault::Denied, LockErrorKind::Permission),
        (Fault::Missing, LockErrorKind::Other),
    ] {
        let lists = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&lists);
        let store = Faulty::new(move |call| {
            count.fetch_add(usize::from(call == "list"), Ordering::Relaxed);
            (call == "create lock").then_some(fault)
        });
        let error = lock_on(&store, config()).acquire(Duration::ZERO).await;
        let error = error.expect_err("it cannot be written");
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(
            lists.load(Ordering::Relaxed),
            2,
            "before and after the announcement"
        );
        assert_eq!(all(&store).await, [] as [&str; 0]);
    }
}

/// Some stores say of an update of what is gone that the version is another one,
/// and some that the object is not there.
#[tokio::test(start_paused = true)]
async fn a_renewal_of_what_is_not_there_is_a_loss() {
    for fault in [None, Some(Fault::Missing)] {
        let store = Faulty::new(|_| None);
        let mut config = config();
        config.ttl = Some(Duration::from_secs(30));
        let guard = lock_on(&store, config).acquire(Duration::ZERO).await;
        let guard = guard.expect("free");
        let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
        delete(&shared, PATH).await;
        store.set(move |call| if call == "update lock" { fault } else { None });
        let lost = guard.lost().await;
        assert!(lost.message().contains("removed"), "{lost}");
        let release = guard.release().await.expect("it answers");
        assert_eq!(release, Release::AlreadyGone);
    }
}
