//! Writers who meet us in the middle of an acquisition: those of other tools, who
//! look, announce, look again and then write blindly.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use snapshot_prepare::lock::{HolderKind, LockErrorKind, RunLock};
use tokio::time::{Instant, sleep};

use super::faulty::{Fault, Faulty, Shared, all, lock_on};
use super::support::{OTHER, PATH, config, delete, read, write};

const INTENT: &str = "backup/truncating.lock.INTENT.00000000000000000000000000000001";

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A store on which another announces itself just before our lock comes in place,
/// withdraws so much later, and may have written a lock by then.
fn meeting(after: Duration, writes: Option<&'static str>) -> Arc<Faulty> {
    let store = Faulty::new(|_| None);
    let other: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    let mut is_met = false;
    store.set(move |call| {
        if call == "create lock" && !is_met {
            is_met = true;
            let other = Arc::clone(&other);
            tokio::spawn(async move {
                write(&other, INTENT, "").await;
                sleep(after).await;
                if let Some(path) = writes {
                    write(&other, path, OTHER).await;
                }
                delete(&other, INTENT).await;
            });
            // Late enough for the announcement to come first.
            return Some(Fault::Late(Duration::from_millis(1)));
        }
        None
    });
    store
}

#[tokio::test(start_paused = true)]
async fn who_writes_blindly_a_moment_later_has_the_lock() {
    for after in [
        Duration::ZERO,
        Duration::from_millis(500),
        Duration::from_millis(1900),
    ] {
        let store = meeting(after, Some(PATH));
        let lock = lock_on(&store, config());
        let error = lock
            .acquire(Duration::ZERO)
            .await
            .expect_err("it is theirs");
        assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
        assert_eq!(error.holders().listed[0].host.as_deref(), Some("there"));
        sleep(secs(60)).await;
        assert_eq!(all(&store).await, [PATH]);
        let shared: Arc<dyn ObjectStore> = Arc::new(Shared(store));
        assert_eq!(read(&shared, PATH).await.as_deref(), Some(OTHER));
    }
}

/// Tools whose every acquisition has a name of its own overwrite nothing.
#[tokio::test(start_paused = true)]
async fn who_puts_a_lock_beside_ours_makes_us_give_way() {
    const INSTANCE: &str = "backup/truncating.lock.00112233445566778899aabbccddeeff";
    let store = meeting(Duration::from_millis(500), Some(INSTANCE));
    let lock = lock_on(&store, config());
    let error = lock
        .acquire(Duration::ZERO)
        .await
        .expect_err("theirs is there too");
    assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
    assert_eq!(error.holders().total, 1, "{error}");
    assert_eq!(all(&store).await, [INSTANCE]);
}

#[tokio::test(start_paused = true)]
async fn who_gives_way_lets_us_have_it_as_soon_as_it_is_gone() {
    let store = meeting(Duration::from_millis(700), None);
    let begun = Instant::now();
    let guard = lock_on(&store, config()).acquire(Duration::ZERO).await;
    let guard = guard.expect("the other gave way");
    assert!(begun.elapsed() >= Duration::from_millis(700));
    assert!(
        begun.elapsed() < Duration::from_millis(1500),
        "it is gone by then"
    );
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

/// An announcement that stays is its owner's affair: it has seen our lock, or will.
#[tokio::test(start_paused = true)]
async fn who_only_announces_is_not_waited_for_longer_than_needed() {
    let store = meeting(secs(100), None);
    let begun = Instant::now();
    let lock = lock_on(&store, config());
    let guard = lock.acquire(Duration::ZERO).await.expect("it is ours");
    assert!(begun.elapsed() >= secs(2), "the other was waited for");
    assert!(begun.elapsed() < secs(3));
    let status = lock.status().await.expect("readable");
    let kinds: Vec<_> = status.listed.iter().map(|holder| holder.kind).collect();
    assert_eq!(kinds, [HolderKind::Lock, HolderKind::Intent]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn who_announces_before_us_is_waited_for_a_moment_to_see_who_gets_it() {
    for (stays, is_free) in [(secs(1), true), (secs(100), false)] {
        let store = Faulty::new(|_| None);
        let other: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
        write(&other, INTENT, "").await;
        tokio::spawn(async move {
            sleep(stays).await;
            delete(&other, INTENT).await;
        });
        let begun = Instant::now();
        let acquired = lock_on(&store, config()).acquire(Duration::ZERO).await;
        let waited = begun.elapsed();
        match acquired {
            Ok(guard) => {
                assert!(is_free && waited >= stays, "after {waited:?}");
                assert!(guard.release().await.expect("removed").is_clean());
            }
            Err(error) => {
                assert!(!is_free && waited >= secs(2) && waited < secs(4), "{error}");
                assert_eq!(error.holders().listed[0].kind, HolderKind::Intent);
                assert_eq!(all(&store).await, [INTENT]);
            }
        }
    }
}
