use std::time::Duration;

use super::context::{
    Contenders, LOOK, Outcome, ensure, ensure_free, ensure_only, ensure_refused, ensure_same,
    failed, give_back, status, take, take_soon,
};
use crate::lock::LockGuard;
use crate::time::Timestamp;

pub(super) async fn takes_free_lock(contenders: &dyn Contenders) -> Outcome {
    let lock = contenders.contender("first");
    ensure_free(&*lock).await?;
    let guard = take(&*lock).await?;
    guard.ensure_held().map_err(failed("ensure_held"))?;
    ensure(!guard.id().is_empty(), || "the id is empty".to_owned())?;
    ensure(!guard.remaining().is_zero(), || {
        "a lock that was just taken lasts no longer".to_owned()
    })?;
    ensure(
        guard.expires() == (guard.valid_until() != Timestamp::MAX),
        || "a lock expires if and only if it has an end".to_owned(),
    )?;
    ensure_only(&*lock, guard.id()).await?;
    give_back(guard).await
}

pub(super) async fn refuses_second(contenders: &dyn Contenders) -> Outcome {
    let guard = take(&*contenders.contender("first")).await?;
    for hint in ["second", "third"] {
        let other = contenders.contender(hint);
        ensure_refused(other.acquire(Duration::ZERO).await, guard.id())?;
    }
    guard
        .ensure_held()
        .map_err(failed("ensure_held after a refusal"))?;
    ensure_only(&*contenders.contender("second"), guard.id()).await?;
    give_back(guard).await
}

pub(super) async fn shows_holder(contenders: &dyn Contenders) -> Outcome {
    let guard = take(&*contenders.contender("who it is")).await?;
    let other = contenders.contender("second");
    for holder in status(&*other).await?.listed {
        ensure_same(&holder, guard.holder())?;
    }
    if let Err(error) = other.acquire(Duration::ZERO).await {
        for holder in &error.holders().listed {
            ensure_same(holder, guard.holder())?;
        }
        ensure(error.message().contains(guard.id()), || {
            format!("the refusal does not name the id of the holder: {error}")
        })?;
    }
    give_back(guard).await
}

pub(super) async fn not_reentrant(contenders: &dyn Contenders) -> Outcome {
    let lock = contenders.contender("first");
    let guard = take(&*lock).await?;
    ensure_refused(lock.acquire(Duration::ZERO).await, guard.id())?;
    give_back(guard).await?;
    give_back(take(&*lock).await?).await
}

pub(super) async fn release_frees(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    give_back(take(&*first).await?).await?;
    ensure_free(&*first).await?;
    let guard = take(&*second).await?;
    ensure_refused(first.acquire(Duration::ZERO).await, guard.id())?;
    give_back(guard).await?;
    ensure_free(&*first).await
}

pub(super) async fn status_only_reads(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    for _ in 0..3 {
        ensure_free(&*first).await?;
    }
    let guard = take(&*second).await?;
    for _ in 0..3 {
        ensure_only(&*first, guard.id()).await?;
        guard
            .ensure_held()
            .map_err(failed("ensure_held after a look"))?;
    }
    give_back(guard).await?;
    ensure_free(&*first).await
}

pub(super) async fn acquisitions_differ(contenders: &dyn Contenders) -> Outcome {
    let locks = [
        contenders.contender("first"),
        contenders.contender("second"),
    ];
    let mut seen: Vec<(String, Option<u64>)> = Vec::new();
    for round in 0..6 {
        let guard = take(&*locks[round % 2]).await?;
        let (id, fence) = (guard.id().to_owned(), guard.fence());
        give_back(guard).await?;
        ensure(seen.iter().all(|(earlier, _)| *earlier != id), || {
            format!("two acquisitions have the id {id}")
        })?;
        let last = seen.last().and_then(|(_, fence)| *fence);
        ensure(last.is_none_or(|last| fence > Some(last)), || {
            format!("the fencing number went from {last:?} to {fence:?}")
        })?;
        seen.push((id, fence));
    }
    Ok(())
}

pub(super) async fn drop_frees(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    drop(take(&*first).await?);
    give_back(take_soon(&*second).await?).await?;
    ensure_free(&*first).await
}

pub(super) async fn held_past_lease(contenders: &dyn Contenders) -> Outcome {
    let guard = take(&*contenders.contender("first")).await?;
    let other = contenders.contender("second");
    let result = past_lease(&guard, &*other).await;
    let released = give_back(guard).await;
    result.and(released)
}

async fn past_lease(guard: &LockGuard, other: &dyn crate::lock::RunLock) -> Outcome {
    if !guard.expires() {
        return Ok(());
    }
    // Twice as long as was granted first.
    let granted = guard.remaining();
    let mut slept = Duration::ZERO;
    while slept < granted * 2 {
        tokio::time::sleep(LOOK).await;
        slept += LOOK;
        guard
            .ensure_held()
            .map_err(failed("ensure_held past the first lease"))?;
    }
    ensure_refused(other.acquire(Duration::ZERO).await, guard.id())
}
