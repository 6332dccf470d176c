//! The lock in memory keeps the contract, with and without a lease.

use std::time::Duration;

use snapshot_prepare::lock::conformance::run;
use snapshot_prepare::lock::{Clock, LockConfig, LockErrorKind, MemoryLock, Release, RunLock};

use crate::contest::{ROUNDS, contest};

pub(crate) fn config(ttl: Option<Duration>) -> LockConfig {
    let mut config = LockConfig::default();
    config.ttl = ttl;
    config.clock = Clock::Tokio;
    config.check_interval = Duration::from_secs(1);
    config
}

async fn conforms(ttl: Option<Duration>) {
    let lock = MemoryLock::new(config(ttl)).expect("the settings can work");
    let contender = |hint: &str| {
        let mut config = config(ttl);
        config.hint = hint.to_owned();
        Box::new(lock.contender(config).expect("the settings can work")) as Box<dyn RunLock>
    };
    assert_eq!(run(&contender).await, []);
}

#[tokio::test(start_paused = true)]
async fn conforms_without_lease() {
    conforms(None).await;
}

#[tokio::test(start_paused = true)]
async fn conforms_with_lease() {
    conforms(Some(Duration::from_secs(10))).await;
}

#[tokio::test]
async fn conforms_on_the_systems_clock() {
    let mut config = LockConfig::default();
    config.ttl = Some(Duration::from_secs(3));
    config.margin = Duration::from_millis(200);
    let lock = MemoryLock::new(config.clone()).expect("the settings can work");
    let contender =
        |_: &str| Box::new(lock.contender(config.clone()).expect("as before")) as Box<dyn RunLock>;
    assert_eq!(run(&contender).await, []);
}

async fn contenders(ttl: Option<Duration>) {
    let config = config(ttl);
    let lock = MemoryLock::new(config.clone()).expect("the settings can work");
    let contender = |config| Box::new(lock.contender(config).expect("they can work")) as _;
    contest(contender, &config, 20, ROUNDS, Duration::from_millis(50)).await;
    assert!(lock.status().await.expect("readable").is_empty());
}

#[tokio::test(start_paused = true)]
async fn contenders_exclude_each_other() {
    contenders(None).await;
    contenders(Some(Duration::from_secs(10))).await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_without_a_task_loses_the_lock_to_the_next() {
    let lock = MemoryLock::new(config(Some(Duration::from_secs(10)))).expect("they can work");
    let guard = {
        let lock = lock.clone();
        // A runtime that is shut down ends the task that renews.
        let acquiring = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(lock.acquire(Duration::ZERO))
        });
        acquiring.join().expect("no panic").expect("free")
    };
    let error = guard.lost().await;
    assert_eq!(error.kind(), LockErrorKind::Lost);
    let next = lock
        .acquire(Duration::from_secs(11))
        .await
        .expect("expired");
    assert_ne!(next.id(), guard.id());
    assert!(guard.release().await.is_err());
    next.ensure_held().expect("the other's end does no harm");
}

#[tokio::test(start_paused = true)]
async fn a_release_names_who_has_the_lock_instead() {
    let lock = MemoryLock::new(config(None)).expect("they can work");
    assert_eq!(lock.location(), "memory");
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    lock.break_lock(guard.id()).await.expect("it is held");
    let next = lock.acquire(Duration::ZERO).await.expect("free");
    match guard.release().await.expect("memory answers") {
        Release::TakenOver(holder) => assert_eq!(holder.id, next.id()),
        release => panic!("{release}"),
    }
    lock.break_lock(next.id()).await.expect("it is held");
    let release = next.release().await.expect("memory answers");
    assert_eq!(release, Release::AlreadyGone);
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let error = MemoryLock::new(config(Some(Duration::from_secs(3)))).expect_err("margin");
    assert_eq!(error.kind(), LockErrorKind::Config);
}

#[test]
fn outside_of_a_runtime_it_is_an_error() {
    let lock = MemoryLock::new(LockConfig::default()).expect("they can work");
    let mut acquiring = lock.acquire(Duration::ZERO);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match acquiring.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => assert_eq!(error.kind(), LockErrorKind::Config),
        other => panic!("{other:?}"),
    }
}
