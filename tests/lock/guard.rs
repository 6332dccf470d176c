//! What the guard does with what a backend says, on paused time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use snapshot_prepare::lock::{
    Asked, BoxFuture, HeldLock, Holder, HolderKind, LockConfig, LockError, LockErrorKind,
    LockGuard, Loss, Release, RenewError,
};
use snapshot_prepare::time::Timestamp;
use tokio::time::{Instant, advance, sleep, timeout};

use crate::memory::config;

const TTL: Duration = Duration::from_secs(30);

/// What the backend does at a renewal.
enum Renew {
    Grant(Duration, Option<Duration>),
    Fail,
    Lose(Loss),
    Hang,
    Panic,
}

/// What the backend saw.
#[derive(Default)]
struct Seen {
    renewals: Vec<Duration>,
    /// How many renewals were begun and neither answered nor dropped.
    under_way: usize,
    released: Option<Duration>,
    released_during_renewal: bool,
}

struct Backend {
    start: Instant,
    script: VecDeque<Renew>,
    seen: Arc<Mutex<Seen>>,
    release: Option<(Duration, Result<Release, LockError>)>,
}

struct UnderWay(Arc<Mutex<Seen>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Ok(mut seen) = self.0.lock() {
            seen.under_way -= 1;
        }
    }
}

impl HeldLock for Backend {
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>> {
        let step = self.script.pop_front();
        {
            let mut seen = self.seen.lock().expect("whole");
            seen.renewals.push(self.start.elapsed());
            seen.under_way += 1;
        }
        let under_way = UnderWay(Arc::clone(&self.seen));
        Box::pin(async move {
            let _under_way = under_way;
            match step.unwrap_or(Renew::Grant(Duration::ZERO, Some(TTL))) {
                Renew::Grant(after, granted) => {
                    sleep(after).await;
                    Ok(granted)
                }
                Renew::Fail => {
                    let error = LockError::new(LockErrorKind::Unreachable, "not there");
                    Err(RenewError::Failed(error))
                }
                Renew::Lose(loss) => Err(RenewError::Lost(loss)),
                Renew::Hang => std::future::pending().await,
                Renew::Panic => panic!("a fault of the backend"),
            }
        })
    }

    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>> {
        let (after, result) = self
            .release
            .take()
            .unwrap_or((Duration::ZERO, Ok(Release::Released)));
        Box::pin(async move {
            {
                let mut seen = self.seen.lock().expect("whole");
                seen.released = Some(self.start.elapsed());
                seen.released_during_renewal = seen.under_way > 0;
            }
            sleep(after).await;
            result
        })
    }
}

struct Case {
    guard: LockGuard,
    seen: Arc<Mutex<Seen>>,
    start: Instant,
}

impl Case {
    fn start(script: impl Into<VecDeque<Renew>>) -> Self {
        Self::with(script.into(), Some(TTL), None)
    }

    fn with(
        script: VecDeque<Renew>,
        granted: Option<Duration>,
        release: Option<(Duration, Result<Release, LockError>)>,
    ) -> Self {
        let config: LockConfig = config(granted);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let start = Instant::now();
        let backend = Backend {
            start,
            script,
            seen: Arc::clone(&seen),
            release,
        };
        let holder = Holder::new(HolderKind::Lock, "me", "here");
        let asked = Asked::now(&config);
        let guard = LockGuard::start(backend, holder, Some(7), asked, granted, &config);
        Self { guard, seen, start }
    }

    fn renewals(&self) -> Vec<u64> {
        let seen = self.seen.lock().expect("whole");
        seen.renewals.iter().map(Duration::as_secs).collect()
    }
}

async fn released(guard: LockGuard) -> Release {
    guard.release().await.expect("the backend answers")
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn renews_at_a_third_and_stays_held() {
    let case = Case::start([]);
    sleep(secs(95)).await;
    assert_eq!(case.renewals(), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    case.guard.ensure_held().expect("renewed");
    assert_eq!(case.guard.fence(), Some(7));
    assert_eq!(case.guard.id(), "me");
    assert!(case.guard.expires());
    assert_eq!(released(case.guard).await, Release::Released);
    let seen = case.seen.lock().expect("whole");
    assert_eq!(seen.released.map(|at| at.as_secs()), Some(95));
}

#[tokio::test(start_paused = true)]
async fn is_lost_by_the_own_clock_without_any_answer() {
    let hang = |_| Renew::Hang;
    let case = Case::start((0..50).map(hang).collect::<VecDeque<_>>());
    let error = case.guard.lost().await;
    assert_eq!(error.kind(), LockErrorKind::Lost);
    // Granted for 30 s when asked for at 0, less the margin.
    assert_eq!(case.start.elapsed().as_secs(), 28);
    assert!(case.guard.ensure_held().is_err());
    assert_eq!(case.guard.valid_until(), Timestamp::ZERO);
    let renewals = case.renewals().len();
    sleep(secs(100)).await;
    assert_eq!(
        case.renewals().len(),
        renewals,
        "a lost lock is not renewed"
    );
    assert!(case.guard.ensure_held().is_err(), "for good");
}

#[tokio::test(start_paused = true)]
async fn time_that_passed_unseen_counts() {
    let case = Case::start([]);
    sleep(secs(1)).await;
    // As if the process had been stopped: no task ran meanwhile.
    advance(secs(27)).await;
    assert_eq!(
        case.guard.ensure_held().map_err(|error| error.kind()),
        Err(LockErrorKind::Lost)
    );
    sleep(secs(5)).await;
    assert_eq!(
        case.renewals(),
        [] as [u64; 0],
        "it is not renewed afterwards"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_repeated_and_survived() {
    let case = Case::start([Renew::Fail, Renew::Hang, Renew::Fail]);
    sleep(secs(60)).await;
    case.guard
        .ensure_held()
        .expect("a later attempt came through");
    assert!(case.renewals().len() > 5);
}

#[tokio::test(start_paused = true)]
async fn the_backends_word_ends_it_at_once() {
    for (loss, word) in [
        (Loss::Removed, "removed or expired"),
        (
            Loss::TakenOver(Box::new(Holder::new(HolderKind::Lock, "other", "here"))),
            "id other holds it",
        ),
    ] {
        let case = Case::with([Renew::Lose(loss)].into(), None, None);
        let error = case.guard.lost().await;
        assert_eq!(case.start.elapsed().as_millis(), 1000);
        assert!(error.message().contains(word), "{error}");
        assert!(case.guard.ensure_held().is_err());
        sleep(secs(60)).await;
        assert_eq!(case.renewals().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_end_does_not_lapse() {
    let hang = |_| Renew::Hang;
    let case = Case::with((0..5).map(hang).collect(), None, None);
    sleep(secs(40)).await;
    case.guard.ensure_held().expect("nothing speaks against it");
    assert!(!case.guard.expires());
    assert_eq!(case.guard.remaining(), Duration::MAX);
    case.guard.ensure_held_for(secs(1 << 40)).expect("no end");
}

#[tokio::test(start_paused = true)]
async fn a_step_of_known_length_needs_that_time() {
    let case = Case::start([]);
    assert_eq!(case.guard.remaining(), secs(28));
    case.guard.ensure_held_for(secs(27)).expect("28 s are left");
    let error = case.guard.ensure_held_for(secs(28)).expect_err("not more");
    assert_eq!(error.kind(), LockErrorKind::Unreachable);
    case.guard.ensure_held().expect("it is held all the same");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_backend_loses_the_lock() {
    let case = Case::with([Renew::Panic].into(), None, None);
    let error = case.guard.lost().await;
    assert_eq!(error.kind(), LockErrorKind::Lost);
    let error = case.guard.release().await.expect_err("nobody released it");
    assert_eq!(error.kind(), LockErrorKind::Other);
}

#[tokio::test(start_paused = true)]
async fn lost_never_resolves_when_released_in_time() {
    let case = Case::start([]);
    let lost = case.guard.lost();
    assert_eq!(released(case.guard).await, Release::Released);
    assert!(timeout(secs(3600), lost).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_release_of_a_lost_lock_says_so() {
    let case = Case::start([Renew::Hang, Renew::Hang]);
    sleep(secs(1)).await;
    advance(secs(30)).await;
    let release = case.guard.release().await.expect("it answers");
    assert_eq!(release, Release::Lapsed);
    assert!(!release.is_clean());
}

#[tokio::test(start_paused = true)]
async fn the_release_waits_for_the_renewal_under_way_but_not_for_long() {
    // Answered in time.
    let case = Case::start([Renew::Grant(secs(3), Some(TTL))]);
    sleep(Duration::from_millis(10_500)).await;
    assert_eq!(released(case.guard).await, Release::Released);
    let at = |case: &Seen| case.released.map(|at| at.as_secs());
    {
        let seen = case.seen.lock().expect("whole");
        assert_eq!((at(&seen), seen.released_during_renewal), (Some(13), false));
    }
    // Never answered: half of the 10 s of the release are spent on it.
    let case = Case::start([Renew::Hang]);
    sleep(Duration::from_millis(10_500)).await;
    assert_eq!(released(case.guard).await, Release::Released);
    let seen = case.seen.lock().expect("whole");
    assert_eq!((at(&seen), seen.released_during_renewal), (Some(15), false));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_ends_under_its_own_deadline() {
    let never = Some((secs(1 << 30), Ok(Release::Released)));
    let case = Case::with(VecDeque::new(), Some(TTL), never);
    let error = case.guard.release().await.expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable);
    assert_eq!(case.start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn dropping_releases_in_the_background_whatever_is_polled() {
    for poll in [false, true] {
        let case = Case::start([]);
        sleep(secs(1)).await;
        if poll {
            // A release whose result nobody waits for.
            drop(case.guard.release());
        } else {
            drop(case.guard);
        }
        sleep(secs(60)).await;
        let seen = case.seen.lock().expect("whole");
        assert_eq!(seen.released.map(|at| at.as_secs()), Some(1));
        assert_eq!(seen.renewals.len(), 0);
    }
}
