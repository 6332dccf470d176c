use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::context::{
    Contenders, LONG, LOOK, Outcome, becomes_free, ensure_free, ensure_refused, failed, give_back,
    take, take_soon,
};
use crate::lock::{BoxFuture, LockError, LockGuard, RunLock};

pub(super) async fn gets_lock(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    let guard = take(&*first).await?;
    let waiting = take_soon(&*second);
    let releasing = async {
        tokio::time::sleep(LOOK * 5).await;
        guard.ensure_held().map_err(failed("ensure_held"))?;
        give_back(guard).await
    };
    let (waited, released) = tokio::join!(waiting, releasing);
    released?;
    give_back(waited?).await?;
    ensure_free(&*first).await
}

pub(super) async fn ends(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    let guard = take(&*first).await?;
    ensure_refused(second.acquire(LOOK * 20).await, guard.id())?;
    guard
        .ensure_held()
        .map_err(failed("ensure_held after a wait in vain"))?;
    give_back(guard).await?;
    ensure_free(&*first).await?;
    // Nobody waits any more, so the lock stays free.
    tokio::time::sleep(LOOK * 5).await;
    ensure_free(&*first).await
}

pub(super) async fn dropped_leaves_nothing(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    let guard = take(&*first).await?;
    give_up(second.acquire(LONG), LOOK * 10).await?;
    guard
        .ensure_held()
        .map_err(failed("ensure_held while others give up"))?;
    give_back(guard).await?;
    becomes_free(&*first).await?;
    give_back(take_soon(&*first).await?).await
}

pub(super) async fn cut_off_leaves_nothing(contenders: &dyn Contenders) -> Outcome {
    let (first, second) = (
        contenders.contender("first"),
        contenders.contender("second"),
    );
    // Cut off after more and more steps, so that each call is hit by one of them.
    for steps in 1..=16 {
        cut_off(&*first, steps).await;
        give_back(take_soon(&*second).await?).await?;
        becomes_free(&*second).await?;
    }
    Ok(())
}

/// Begins to acquire, lets it run for so many turns of the runtime, and drops it.
async fn cut_off(lock: &dyn RunLock, steps: usize) {
    let mut acquiring = lock.acquire(Duration::ZERO);
    for _ in 0..steps {
        if poll_once(&mut acquiring).await.is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn poll_once(
    acquiring: &mut BoxFuture<'_, Result<LockGuard, LockError>>,
) -> Option<Result<LockGuard, LockError>> {
    poll_fn(|context| match Pin::new(&mut *acquiring).poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Waits for the lock for a time and drops the wait.
async fn give_up(
    acquiring: BoxFuture<'_, Result<LockGuard, LockError>>,
    after: Duration,
) -> Outcome {
    match tokio::time::timeout(after, acquiring).await {
        Err(_) => Ok(()),
        Ok(Ok(guard)) => Err(format!("a lock that is held was taken by {}", guard.id())),
        Ok(Err(error)) => Err(failed("a wait")(error)),
    }
}
