//! Releases that do not go smoothly, and announcements that are withdrawn late.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use snapshot_prepare::lock::{LockErrorKind, Release, RunLock};
use tokio::time::{Instant, sleep};

use super::faulty::{Fault, Faulty, Shared, all, lock_on};
use super::support::{OTHER, PATH, config, read, write};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_removal_whose_answer_is_lost_leaves_the_next_one_alone() {
    for ttl in [None, Some(secs(30))] {
        let store = Faulty::new(|_| None);
        let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
        let mut config = config();
        config.ttl = ttl;
        // Longer than it takes the next one to come.
        config.backoff_min = secs(1);
        let guard = lock_on(&store, config).acquire(Duration::ZERO).await;
        let guard = guard.expect("free");
        let next = Arc::clone(&shared);
        let mut is_met = false;
        store.set(move |call| {
            if call != "delete lock" || is_met {
                return None;
            }
            is_met = true;
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                sleep(Duration::from_millis(100)).await;
                write(&next, PATH, OTHER).await;
            });
            Some(Fault::ActsAndFails)
        });
        let begun = Instant::now();
        let release = guard.release().await.expect("it is removed");
        assert!(begun.elapsed() >= secs(1), "it is not asked again at once");
        assert_eq!(release, Release::Released, "{ttl:?}");
        assert_eq!(read(&shared, PATH).await.as_deref(), Some(OTHER));
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_not_allowed_is_said_at_once() {
    let store = Faulty::new(|call| (call == "delete lock").then_some(Fault::Denied));
    let mut config = config();
    config.ttl = Some(secs(30));
    config.release_timeout = secs(20);
    let guard = lock_on(&store, config).acquire(Duration::ZERO).await;
    let guard = guard.expect("free");
    let begun = Instant::now();
    let error = guard.release().await.expect_err("it is not allowed");
    assert_eq!(error.kind(), LockErrorKind::Permission, "{error}");
    assert!(begun.elapsed() < secs(1));
    // Renewed beforehand for twice as long as the release may take, so that
    // nobody takes it over in the middle of it.
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(store));
    let left = read(&shared, PATH).await.expect("still there");
    assert!(left.contains(r#""lease_ms":40000"#), "{left}");
}

#[tokio::test(start_paused = true)]
async fn an_announcement_that_could_not_be_withdrawn_is_withdrawn_later() {
    for ttl in [None, Some(secs(30))] {
        for by_renewal in [true, false] {
            let store = Faulty::new(|call| (call == "delete intent").then_some(Fault::Fails));
            let mut config = config();
            config.ttl = ttl;
            let guard = lock_on(&store, config).acquire(Duration::ZERO).await;
            let guard = guard.expect("free");
            let both = all(&store).await;
            assert_eq!(both.len(), 2, "{both:?}");
            store.set(|_| None);
            if by_renewal {
                sleep(secs(21)).await;
                assert_eq!(all(&store).await, [PATH], "{ttl:?}");
            }
            assert!(guard.release().await.expect("removed").is_clean());
            assert_eq!(all(&store).await, [] as [&str; 0], "{ttl:?}");
        }
    }
}
