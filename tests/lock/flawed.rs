//! The suite finds out locks that are not what they should be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use snapshot_prepare::lock::conformance::Check;
use snapshot_prepare::lock::{
    Asked, BoxFuture, HeldLock, Holder, HolderKind, Holders, LockConfig, LockError, LockErrorKind,
    LockGuard, Loss, Release, RenewError, RunLock,
};
use tokio::time::{Instant, sleep, timeout};

use crate::memory::config;

/// What a lock does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    LetsEverybodyIn,
    LetsItselfInAgain,
    LetsInTheThird,
    RefusesAsUnreachable,
    RefusesWithoutHolders,
    RefusesWithoutName,
    HidesHolder,
    ShowsOtherHint,
    StatusFrees,
    StatusTakes,
    ReleaseKeeps,
    ReleaseSaysGone,
    ReleaseTakesFromOther,
    SameId,
    FenceStands,
    NeverExtends,
    DoesNotWait,
    WaitsInVain,
    StaysWhenTimeIsUp,
    StaysWhenDropped,
    LeavesWhatWasCutOff,
    BreaksAnyId,
    BreaksNothing,
    NeverNoticesRemoval,
    SaysLapsedHeld,
}

impl Flaw {
    const ALL: [Self; 25] = [
        Self::LetsEverybodyIn,
        Self::LetsItselfInAgain,
        Self::LetsInTheThird,
        Self::RefusesAsUnreachable,
        Self::RefusesWithoutHolders,
        Self::RefusesWithoutName,
        Self::HidesHolder,
        Self::ShowsOtherHint,
        Self::StatusFrees,
        Self::StatusTakes,
        Self::ReleaseKeeps,
        Self::ReleaseSaysGone,
        Self::ReleaseTakesFromOther,
        Self::SameId,
        Self::FenceStands,
        Self::NeverExtends,
        Self::DoesNotWait,
        Self::WaitsInVain,
        Self::StaysWhenTimeIsUp,
        Self::StaysWhenDropped,
        Self::LeavesWhatWasCutOff,
        Self::BreaksAnyId,
        Self::BreaksNothing,
        Self::NeverNoticesRemoval,
        Self::SaysLapsedHeld,
    ];
}

#[derive(Debug)]
struct Taken {
    holder: Holder,
    by: u64,
    ends: Instant,
}

#[derive(Debug, Default)]
struct Slot {
    taken: Option<Taken>,
    refused: u64,
    fence: u64,
}

#[derive(Clone, Debug)]
struct Lock {
    slot: Arc<Mutex<Slot>>,
    flaw: Flaw,
    config: LockConfig,
    number: u64,
}

fn ttl(config: &LockConfig) -> Duration {
    config.ttl.expect("it expires")
}

impl Lock {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        let mut slot = self.slot.lock().expect("whole");
        slot.taken.take_if(|taken| taken.ends <= Instant::now());
        slot
    }

    fn attempt(&self) -> Result<LockGuard, LockError> {
        let mut slot = self.slot();
        if let Some(taken) = &slot.taken {
            let mut seen = taken.holder.clone();
            let may_enter = match self.flaw {
                Flaw::LetsEverybodyIn => true,
                Flaw::LetsItselfInAgain => taken.by == self.number,
                Flaw::LetsInTheThird => slot.refused == 1,
                _ => false,
            };
            if !may_enter {
                slot.refused += 1;
                if self.flaw == Flaw::RefusesWithoutName {
                    let words = LockError::new(LockErrorKind::Held, "no");
                    return Err(words.with_holders([seen].into_iter().collect()));
                }
                if self.flaw == Flaw::ShowsOtherHint {
                    seen.hint = Some("something else".to_owned());
                }
                let holders: Holders = match self.flaw {
                    Flaw::RefusesWithoutHolders => Holders::default(),
                    _ => [seen].into_iter().collect(),
                };
                return Err(match self.flaw {
                    Flaw::RefusesAsUnreachable => {
                        LockError::new(LockErrorKind::Unreachable, "nobody there")
                    }
                    _ => LockError::held(holders, SystemTime::UNIX_EPOCH),
                });
            }
        }
        let asked = Asked::now(&self.config);
        let ttl = ttl(&self.config);
        slot.fence += u64::from(self.flaw != Flaw::FenceStands || slot.fence == 0);
        let holder = self.holder();
        slot.taken = Some(Taken {
            holder: holder.clone(),
            by: self.number,
            ends: Instant::now() + ttl,
        });
        let held = Held {
            lock: self.clone(),
            id: holder.id.clone(),
        };
        let fence = Some(slot.fence);
        drop(slot);
        Ok(LockGuard::start(
            held,
            holder,
            fence,
            asked,
            Some(ttl),
            &self.config,
        ))
    }

    fn holder(&self) -> Holder {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = match self.flaw {
            Flaw::SameId => 7,
            _ => NEXT.fetch_add(1, Ordering::Relaxed),
        };
        let mut holder = Holder::new(HolderKind::Lock, format!("id-{id}"), "here");
        holder.hint = Some(self.config.hint.clone());
        holder
    }

    async fn wait(self, wait: Duration) -> Result<LockGuard, LockError> {
        let deadline = Instant::now() + wait;
        loop {
            match self.attempt() {
                Err(error) if self.flaw == Flaw::DoesNotWait => return Err(error),
                Err(_) if self.flaw == Flaw::WaitsInVain && !wait.is_zero() => {
                    sleep(wait).await;
                    return Err(LockError::new(LockErrorKind::Unreachable, "time is up"));
                }
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => sleep(Duration::from_millis(5)).await,
                Ok(guard) => return Ok(guard),
            }
        }
    }

    /// Acquires in a task that takes the lock sooner or later and keeps it.
    fn stay(&self, wait: Duration) -> impl Future<Output = ()> + Send + 'static {
        let lock = self.clone();
        async move {
            if let Ok(guard) = lock.wait(wait).await {
                std::mem::forget(guard);
            }
        }
    }
}

impl RunLock for Lock {
    fn location(&self) -> String {
        "here".to_owned()
    }

    fn acquire(&self, wait: Duration) -> BoxFuture<'_, Result<LockGuard, LockError>> {
        const LONG: Duration = Duration::from_secs(3600);
        let lock = self.clone();
        Box::pin(async move {
            match self.flaw {
                Flaw::StaysWhenDropped if wait >= LONG => {
                    tokio::spawn(lock.stay(LONG));
                }
                Flaw::LeavesWhatWasCutOff => {
                    let guard = lock.wait(wait).await?;
                    let (holder, slot) = (guard.holder().clone(), Arc::clone(&self.slot));
                    let by = Taken {
                        holder,
                        by: 0,
                        ends: Instant::now() + LONG,
                    };
                    slot.lock().expect("whole").taken = Some(by);
                    let mut cut_off = CutOff(Some(guard));
                    tokio::task::yield_now().await;
                    return cut_off
                        .0
                        .take()
                        .ok_or_else(|| LockError::new(LockErrorKind::Other, "the guard is gone"));
                }
                _ => {}
            }
            let result = lock.clone().wait(wait).await;
            if self.flaw == Flaw::StaysWhenTimeIsUp && result.is_err() && !wait.is_zero() {
                tokio::spawn(lock.stay(LONG));
            }
            result
        })
    }

    fn status(&self) -> BoxFuture<'_, Result<Holders, LockError>> {
        Box::pin(async {
            if self.flaw == Flaw::HidesHolder {
                return Ok(Holders::default());
            }
            let mut slot = self.slot();
            let holders = slot
                .taken
                .iter()
                .map(|taken| taken.holder.clone())
                .collect();
            match self.flaw {
                Flaw::StatusFrees => slot.taken = None,
                Flaw::StatusTakes if slot.taken.is_none() => {
                    let ends = Instant::now() + Duration::from_secs(5);
                    let (holder, by) = (self.holder(), 0);
                    slot.taken = Some(Taken { holder, by, ends });
                }
                _ => {}
            }
            Ok(holders)
        })
    }

    fn break_lock<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Holder, LockError>> {
        Box::pin(async move {
            let mut slot = self.slot();
            let any = self.flaw == Flaw::BreaksAnyId;
            let seen = slot
                .taken
                .as_ref()
                .filter(|taken| any || taken.holder.id == id);
            let Some(holder) = seen.map(|taken| taken.holder.clone()) else {
                return Err(LockError::new(
                    LockErrorKind::NotThatHolder,
                    "no such holder",
                ));
            };
            if self.flaw != Flaw::BreaksNothing {
                slot.taken = None;
            }
            Ok(holder)
        })
    }
}

/// An acquisition that keeps the lock for ever when it is cut off.
struct CutOff(Option<LockGuard>);

impl Drop for CutOff {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

struct Held {
    lock: Lock,
    id: String,
}

impl HeldLock for Held {
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>> {
        let ttl = ttl(&self.lock.config);
        let renewed = match &mut self.lock.slot().taken {
            Some(taken) if taken.holder.id == self.id => {
                if self.lock.flaw != Flaw::NeverExtends {
                    taken.ends = Instant::now() + ttl;
                }
                Ok(Some(ttl))
            }
            _ if matches!(
                self.lock.flaw,
                Flaw::NeverNoticesRemoval | Flaw::LetsEverybodyIn
            ) =>
            {
                Ok(Some(ttl))
            }
            _ => Err(RenewError::Lost(Loss::Removed)),
        };
        Box::pin(std::future::ready(renewed))
    }

    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>> {
        let flaw = self.lock.flaw;
        let mut slot = self.lock.slot();
        let is_ours = slot
            .taken
            .as_ref()
            .is_some_and(|taken| taken.holder.id == self.id);
        if flaw == Flaw::ReleaseTakesFromOther || (is_ours && flaw != Flaw::ReleaseKeeps) {
            slot.taken = None;
        }
        drop(slot);
        let release = match is_ours {
            true if flaw == Flaw::ReleaseSaysGone => Release::AlreadyGone,
            false if flaw == Flaw::SaysLapsedHeld => Release::Released,
            true => Release::Released,
            false => Release::AlreadyGone,
        };
        Box::pin(std::future::ready(Ok(release)))
    }
}

/// Returns the first check that finds something wrong, or that does not end.
async fn first_violation(flaw: Flaw) -> Option<Check> {
    for check in Check::ALL {
        let slot: Arc<Mutex<Slot>> = Arc::default();
        let number = AtomicU64::new(1);
        let contender = |hint: &str| {
            let mut config = config(Some(Duration::from_secs(10)));
            config.hint = hint.to_owned();
            Box::new(Lock {
                slot: Arc::clone(&slot),
                flaw,
                config,
                number: number.fetch_add(1, Ordering::Relaxed),
            }) as Box<dyn RunLock>
        };
        let result = timeout(Duration::from_secs(120), check.run(&contender)).await;
        if !matches!(result, Ok(Ok(()))) {
            return Some(check);
        }
    }
    None
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_flaw_passes() {
    assert_eq!(first_violation(Flaw::None).await, None);
}

#[tokio::test(start_paused = true)]
async fn every_flaw_is_found() {
    let mut missed = Vec::new();
    for flaw in Flaw::ALL {
        match first_violation(flaw).await {
            Some(check) => println!("{flaw:?}: {check}"),
            None => missed.push(flaw),
        }
    }
    assert!(missed.is_empty(), "the suite misses {missed:?}");
}
