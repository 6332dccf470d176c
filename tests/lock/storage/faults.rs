//! Faults of the storage, wherever they strike.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use snapshot_prepare::lock::storage::{LockMode, StorageOptions, WallClock};
use snapshot_prepare::lock::{HolderKind, LockConfig, LockErrorKind, LockGuard, Release, RunLock};
use tokio::time::{Instant, sleep};

use super::contend::contend;
use super::faulty::{Conditions, Fault, Faulty, Shared, all, lock_on, once, with_clock};
use super::support::{PATH, config, read, with_options, write};

const CALLS: [&str; 6] = [
    "list",
    "read",
    "create intent",
    "create lock",
    "delete intent",
    "delete lock",
];

#[tokio::test(start_paused = true)]
async fn one_fault_anywhere_is_survived() {
    for ttl in [None, Some(Duration::from_secs(30))] {
        for call in CALLS.into_iter().chain(["update intent", "update lock"]) {
            for fault in [
                Fault::ActsAndFails,
                Fault::Late(Duration::from_secs(2)),
                Fault::Fails,
                Fault::Busy,
            ] {
                let store = Faulty::new(once(call, fault));
                let mut config = config();
                config.ttl = ttl;
                let lock = lock_on(&store, config);
                let case = format!("{call}, {fault:?}, {ttl:?}");
                let guard = lock.acquire(Duration::ZERO).await;
                let guard = guard.unwrap_or_else(|error| panic!("{case}: {error}"));
                sleep(Duration::from_secs(25)).await;
                guard
                    .ensure_held()
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
                let release = guard.release().await;
                let release = release.unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(release, Release::Released, "{case}");
                assert_eq!(all(&store).await, [] as [&str; 0], "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_acts_twice_is_survived() {
    for call in CALLS {
        let store = Faulty::new(once(call, Fault::Twice));
        let lock = lock_on(&store, config());
        let guard = lock.acquire(Duration::ZERO).await.expect(call);
        assert!(guard.release().await.expect(call).is_clean());
        assert_eq!(all(&store).await, [] as [&str; 0], "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_is_said_at_once_and_leaves_nothing() {
    for call in ["list", "create intent", "create lock"] {
        let store = Faulty::new(move |name| (name == call).then_some(Fault::Denied));
        let begun = Instant::now();
        let error = lock_on(&store, config())
            .acquire(Duration::from_secs(3600))
            .await
            .expect_err(call);
        assert_eq!(error.kind(), LockErrorKind::Permission, "{call}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{call}");
        assert_eq!(all(&store).await, [] as [&str; 0], "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_storage_is_no_conflict() {
    let store = Faulty::new(|_| Some(Fault::Busy));
    let lock = lock_on(&store, config());
    let error = lock.acquire(Duration::ZERO).await.expect_err("busy");
    assert_eq!(error.kind(), LockErrorKind::Throttled, "{error}");
    assert!(store.calls.load(Ordering::Relaxed) > 3, "it is asked again");
    // Free again within the wait.
    let (start, until) = (Instant::now(), Duration::from_secs(60));
    store.set(move |_| (start.elapsed() < until).then_some(Fault::Busy));
    let guard = lock
        .acquire(Duration::from_secs(120))
        .await
        .expect("it is free");
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_lands_after_we_gave_up_is_removed() {
    // Answered 15 s later: after the call's own 10 s, within those of the clean-up.
    let store = Faulty::new(once("create lock", Fault::Late(Duration::from_secs(15))));
    let mut config = config();
    config.call_timeout = Duration::from_secs(2);
    config.release_timeout = Duration::from_secs(20);
    let error = lock_on(&store, config)
        .acquire(Duration::ZERO)
        .await
        .expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable, "{error}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_answer_is_lost_is_found_by_reading_back() {
    let store = Faulty::new(once("create lock", Fault::ActsAndHangs));
    let guard = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("it is ours");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_is_survived_and_a_longer_one_is_not() {
    for (outage, survives) in [(12, true), (60, false)] {
        let store = Faulty::new(|_| None);
        let mut config = config();
        config.ttl = Some(Duration::from_secs(30));
        let lock = lock_on(&store, config);
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        let (start, outage) = (Instant::now(), Duration::from_secs(outage));
        store.set(move |_| (start.elapsed() < outage).then_some(Fault::Fails));
        sleep(Duration::from_secs(70)).await;
        assert_eq!(guard.ensure_held().is_ok(), survives);
        let release = guard.release().await.expect("it is back");
        let expected = if survives {
            Release::Released
        } else {
            Release::Lapsed
        };
        assert_eq!(release, expected);
        assert_eq!(all(&store).await, [] as [&str; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_during_an_outage_ends_in_time_and_says_so() {
    let store = Faulty::new(|_| None);
    let guard = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    store.set(|_| Some(Fault::ActsAndHangs));
    let begun = Instant::now();
    let error = guard.release().await.expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable);
    assert!(
        begun.elapsed() <= Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_lands_after_the_release_brings_nothing_back() {
    let store = Faulty::new(|_| None);
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    let guard = lock_on(&store, config)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    store.set(once("update lock", Fault::Late(Duration::from_secs(60))));
    sleep(Duration::from_millis(10_500)).await;
    assert!(guard.release().await.expect("removed").is_clean());
    sleep(Duration::from_secs(120)).await;
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

fn leased() -> LockConfig {
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    config
}

/// Takes a lock of 30 s at which no renewal arrives, and returns its id. Its
/// holder thinks that it has it until its own clock says otherwise.
async fn abandoned(store: &Arc<Faulty>, clock: WallClock) -> LockGuard {
    let lock = with_clock(store, leased(), clock);
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    store.set(|name| (name == "update lock").then_some(Fault::Fails));
    guard.lost().await;
    store.set(|_| None);
    guard
}

#[tokio::test(start_paused = true)]
async fn an_expired_lock_is_taken_over_after_the_grace_and_not_before() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    let lock = lock_on(&store, leased());
    // It was lost at 28 s by its holder; it ends at 30 s, and the grace at 60 s.
    sleep(Duration::from_secs(31)).await;
    let error = lock.acquire(Duration::ZERO).await.expect_err("59 s");
    assert_eq!(error.kind(), LockErrorKind::Held);
    assert_eq!(error.holders().listed[0].id, guard.id());
    sleep(Duration::from_secs(2)).await;
    let next = lock.acquire(Duration::ZERO).await.expect("61 s");
    assert_ne!(next.id(), guard.id());
    assert_eq!(all(&store).await, [PATH]);
    match guard.release().await.expect("it answers") {
        Release::TakenOver(holder) => assert_eq!(holder.id, next.id()),
        release => panic!("{release}"),
    }
    next.ensure_held().expect("left alone");
    assert!(next.release().await.expect("removed").is_clean());
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

/// Its place is its own, so nobody's lock takes it.
#[tokio::test(start_paused = true)]
async fn an_expired_read_lock_stays_in_the_way_until_it_is_broken() {
    let store = Faulty::new(|_| None);
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    let lock = |mode| {
        let mut options = StorageOptions::default();
        options.wall_clock = store.clock.clone();
        options.mode = mode;
        with_options(&shared, PATH, leased(), options)
    };
    let reader = lock(LockMode::Read).acquire(Duration::ZERO).await;
    let reader = reader.expect("free");
    store.set(|name| (name == "update lock").then_some(Fault::Fails));
    reader.lost().await;
    store.set(|_| None);
    sleep(Duration::from_secs(300)).await;
    let before = all(&store).await;
    for mode in [LockMode::Write, LockMode::Exclusive] {
        let error = lock(mode).acquire(Duration::ZERO).await.expect_err("there");
        assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
        let holder = &error.holders().listed[0];
        assert_eq!(
            (holder.kind, holder.id.as_str()),
            (HolderKind::ReadLock, reader.id())
        );
        assert_eq!(all(&store).await, before);
    }
    let writer = lock(LockMode::Write);
    writer.break_lock(reader.id()).await.expect("the way out");
    let writer = writer.acquire(Duration::ZERO).await.expect("free");
    assert!(writer.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_end_can_take_over_an_expired_one() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    sleep(Duration::from_secs(60)).await;
    let next = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("expired");
    assert!(!next.expires());
    assert!(matches!(guard.release().await, Ok(Release::TakenOver(_))));
    assert!(next.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_take_over_no_lock_that_lives() {
    let hours = Duration::from_secs(5 * 3600);
    let store = Faulty::new(|_| None);
    let base = store.clock.clone();
    let ahead = {
        let base = base.clone();
        WallClock::new(move || base.now() + hours)
    };
    let behind = WallClock::new(move || base.now() - hours);
    // The holder's clock is behind, and the other's ahead.
    let guard = with_clock(&store, leased(), behind)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let other = with_clock(&store, leased(), ahead);
    let error = other
        .acquire(Duration::from_secs(600))
        .await
        .expect_err("it lives");
    assert_eq!(error.holders().listed[0].id, guard.id());
    guard.ensure_held().expect("it was renewed all the time");
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn an_announcement_of_somebody_gone_does_not_stay_for_ever() {
    let store = Faulty::new(|_| None);
    let lock = lock_on(&store, config());
    // It announces, and is gone: nothing reaches the storage any more.
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    store.set(move |name| {
        let is_gone = counted.load(Ordering::Relaxed) > 0;
        counted.fetch_add(usize::from(name == "create intent"), Ordering::Relaxed);
        is_gone.then_some(Fault::Fails)
    });
    lock.acquire(Duration::ZERO).await.expect_err("cut off");
    assert_eq!(all(&store).await.len(), 1, "its announcement");
    store.set(|_| None);
    let other = lock_on(&store, config());
    let error = other
        .acquire(Duration::from_secs(60))
        .await
        .expect_err("it may come back");
    assert_eq!(error.holders().listed[0].kind, HolderKind::Intent);
    let guard = other
        .acquire(Duration::from_secs(600))
        .await
        .expect("it did not");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_store_without_conditions_excludes_by_announcements_and_has_no_lease() {
    for conditions in [
        Conditions::Ignored,
        Conditions::Refused,
        Conditions::OnlyCreate,
    ] {
        let store = Faulty::with(conditions, |_| None);
        let lock = lock_on(&store, leased());
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        assert!(!guard.expires(), "{conditions:?}");
        let error = lock.acquire(Duration::ZERO).await.expect_err("held");
        assert_eq!(error.kind(), LockErrorKind::Held);
        assert!(guard.release().await.expect("removed").is_clean());
        let contenders: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
        contend(&contenders, config(), 5, 50).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_lock_that_cannot_be_replaced_stays() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    let content = read(&shared, PATH).await.expect("there");
    let plain = Faulty::with(Conditions::OnlyCreate, |_| None);
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&plain)));
    write(&shared, PATH, &content).await;
    sleep(Duration::from_secs(3600)).await;
    let lock = lock_on(&plain, config());
    let error = lock
        .acquire(Duration::ZERO)
        .await
        .expect_err("it cannot be replaced");
    assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
    assert_eq!(all(&plain).await, [PATH]);
    lock.break_lock(guard.id()).await.expect("the way out");
    let next = lock.acquire(Duration::ZERO).await.expect("free");
    assert!(next.release().await.expect("removed").is_clean());
}

/// Contenders on a storage with faults at random: never two holders.
#[tokio::test(start_paused = true)]
async fn faults_at_random_never_let_two_in() {
    let mut taken = 0;
    for seed in 0..40_u64 {
        println!("seed {seed}: replay with 0..40 replaced by {seed}..={seed}");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let store = Faulty::new(move |_| match random.random_range(0..60) {
            0 => Some(Fault::ActsAndFails),
            1 => Some(Fault::ActsAndHangs),
            2 => Some(Fault::Late(Duration::from_millis(
                random.random_range(1..20_000),
            ))),
            3 => Some(Fault::Fails),
            4 => Some(Fault::Busy),
            _ => None,
        });
        let inside = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..4)
            .map(|number| {
                let mut config = config();
                config.seed = Some(seed * 100 + number);
                config.ttl = (seed % 2 == 0).then_some(Duration::from_secs(30));
                let (lock, inside) = (lock_on(&store, config), Arc::clone(&inside));
                tokio::spawn(async move {
                    let mut taken = 0;
                    for _ in 0..5 {
                        let Ok(guard) = lock.acquire(Duration::from_secs(300)).await else {
                            continue;
                        };
                        let before = inside.fetch_add(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        let is_held = guard.ensure_held().is_ok();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        assert!(before == 0 || !is_held, "seed {seed}: two hold it");
                        drop(guard.release().await);
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        for task in tasks {
            taken += task.await.unwrap_or_else(|_| panic!("seed {seed}"));
        }
    }
    println!("taken {taken} times");
    assert!(taken > 400, "the lock was taken {taken} times only");
}
