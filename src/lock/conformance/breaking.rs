use std::time::Duration;

use super::context::{
    Contenders, Outcome, ensure, ensure_free, ensure_only, ensure_refused, failed, give_back, take,
};
use crate::lock::{LockErrorKind, LockGuard, Release, RunLock};

pub(super) async fn needs_id(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    // The id of somebody who is not there any more.
    let gone = take(&*second).await?;
    let gone_id = gone.id().to_owned();
    give_back(gone).await?;
    ensure_not_that_holder(&*second, &gone_id).await?;

    let guard = take(&*first).await?;
    for id in ["", "somebody else", &gone_id] {
        ensure_not_that_holder(&*second, id).await?;
    }
    guard
        .ensure_held()
        .map_err(failed("ensure_held after breaks of others"))?;
    ensure_only(&*second, guard.id()).await?;
    ensure_refused(second.acquire(Duration::ZERO).await, guard.id())?;
    give_back(guard).await
}

async fn ensure_not_that_holder(lock: &dyn RunLock, id: &str) -> Outcome {
    match lock.break_lock(id).await {
        Ok(holder) => Err(format!("breaking {id:?} removed {holder:?}")),
        Err(error) => ensure(error.kind() == LockErrorKind::NotThatHolder, || {
            format!("breaking {id:?} failed as {:?}: {error}", error.kind())
        }),
    }
}

pub(super) async fn broken_is_lost(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    let guard = take(&*first).await?;
    break_it(&*second, guard.id()).await?;
    ensure_lost(&guard).await?;
    ensure_free(&*second).await?;
    let release = guard.release().await.map_err(failed("release"))?;
    ensure(release == Release::AlreadyGone, || {
        format!("the release of a lock that was removed says '{release}'")
    })?;
    give_back(take(&*second).await?).await
}

pub(super) async fn replaced_is_lost(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    let guard = take(&*first).await?;
    break_it(&*second, guard.id()).await?;
    let other = take(&*second).await?;
    ensure_lost(&guard).await?;
    let other_id = other.id().to_owned();
    match guard.release().await.map_err(failed("release"))? {
        // Where each holder has a place of its own, the other is not looked for.
        Release::AlreadyGone => {}
        Release::TakenOver(holder) if holder.id == other_id => {}
        release => {
            return Err(format!(
                "{other_id} has the lock now, but the release says '{release}'"
            ));
        }
    }
    other
        .ensure_held()
        .map_err(failed("ensure_held of who took over"))?;
    ensure_only(&*first, other.id()).await?;
    give_back(other).await?;
    ensure_free(&*first).await
}

async fn break_it(lock: &dyn RunLock, id: &str) -> Outcome {
    let broken = lock.break_lock(id).await.map_err(failed("break_lock"))?;
    ensure(broken.id == id, || {
        format!("breaking {id} says that it removed {}", broken.id)
    })
}

/// Waits until the guard knows that the lock is lost, and checks that it stays so.
async fn ensure_lost(guard: &LockGuard) -> Outcome {
    let lost = guard.lost().await;
    ensure(lost.kind() == LockErrorKind::Lost, || {
        format!("the loss is told as {:?}: {lost}", lost.kind())
    })?;
    for _ in 0..3 {
        ensure(guard.ensure_held().is_err(), || {
            "a lost lock counts as held".to_owned()
        })?;
        ensure(guard.remaining().is_zero(), || {
            "a lost lock has time left".to_owned()
        })?;
        tokio::task::yield_now().await;
    }
    Ok(())
}
