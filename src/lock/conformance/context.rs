use std::time::Duration;

use crate::lock::{Holder, Holders, LockError, LockErrorKind, LockGuard, Release, RunLock};

/// Makes those who want the lock. A function that does it will do.
pub trait Contenders: Sync {
    /// Returns somebody who wants the lock, with this text as
    /// [`hint`](crate::lock::LockConfig::hint).
    fn contender(&self, hint: &str) -> Box<dyn RunLock>;
}

impl<F: Fn(&str) -> Box<dyn RunLock> + Sync> Contenders for F {
    fn contender(&self, hint: &str) -> Box<dyn RunLock> {
        self(hint)
    }
}

/// A wait that is not meant to end by itself.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// How often something is looked at that has to become true.
pub(super) const LOOK: Duration = Duration::from_millis(10);

pub(super) type Outcome = Result<(), String>;

pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(message()) }
}

/// Says that a call failed that should not have.
pub(super) fn failed(what: &str) -> impl FnOnce(LockError) -> String {
    let what = what.to_owned();
    move |error| format!("{what} failed as {:?}: {error}", error.kind())
}

pub(super) async fn take(lock: &dyn RunLock) -> Result<LockGuard, String> {
    lock.acquire(Duration::ZERO)
        .await
        .map_err(failed("acquiring a free lock"))
}

/// Takes a lock that becomes free by and by.
pub(super) async fn take_soon(lock: &dyn RunLock) -> Result<LockGuard, String> {
    lock.acquire(LONG)
        .await
        .map_err(failed("acquiring a lock that becomes free"))
}

pub(super) async fn give_back(guard: LockGuard) -> Outcome {
    let release = guard.release().await.map_err(failed("release"))?;
    ensure(release == Release::Released, || {
        format!("the release of a lock that was held all the time says '{release}'")
    })
}

pub(super) async fn status(lock: &dyn RunLock) -> Result<Holders, String> {
    lock.status().await.map_err(failed("status"))
}

/// Checks that the lock has this holder alone.
pub(super) async fn ensure_only(lock: &dyn RunLock, id: &str) -> Outcome {
    ensure_is_only(&status(lock).await?, id)
}

pub(super) fn ensure_is_only(holders: &Holders, id: &str) -> Outcome {
    let is_only = holders.total == 1 && holders.listed.iter().all(|holder| holder.id == id);
    ensure(is_only && holders.listed.len() == 1, || {
        format!("expected the holder {id} alone, found {holders:?}")
    })
}

/// Checks that nobody holds the lock.
pub(super) async fn ensure_free(lock: &dyn RunLock) -> Outcome {
    let holders = status(lock).await?;
    ensure(holders.is_empty(), || {
        format!("the lock should be free, found {holders:?}")
    })
}

/// Waits until nobody holds the lock.
pub(super) async fn becomes_free(lock: &dyn RunLock) -> Outcome {
    while !status(lock).await?.is_empty() {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Checks that an acquisition was refused because of the holder `id`.
pub(super) fn ensure_refused(result: Result<LockGuard, LockError>, id: &str) -> Outcome {
    match result {
        Ok(guard) => Err(format!("two hold the lock: {id} and {}", guard.id())),
        Err(error) => {
            ensure(error.kind() == LockErrorKind::Held, || {
                format!("a held lock was refused as {:?}: {error}", error.kind())
            })?;
            ensure_is_only(error.holders(), id)
        }
    }
}

/// Checks that what others see of a holder is what it said of itself, as far as
/// the backend can tell.
pub(super) fn ensure_same(seen: &Holder, own: &Holder) -> Outcome {
    fn agrees<T: PartialEq>(seen: Option<&T>, own: Option<&T>) -> bool {
        seen.is_none() || seen == own
    }
    let is_same = seen.id == own.id
        && agrees(seen.host.as_ref(), own.host.as_ref())
        && agrees(seen.pid.as_ref(), own.pid.as_ref())
        && agrees(seen.purpose.as_ref(), own.purpose.as_ref())
        && agrees(seen.hint.as_ref(), own.hint.as_ref());
    ensure(is_same, || {
        format!("the holder says of itself {own:?}, others see {seen:?}")
    })
}
