use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::error::{LockError, LockErrorKind};
use super::held::{HeldLock, Loss, Release, RenewError};
use super::renewal::{Renewal, Step};
use super::state::{State, sleep_until};

/// Keeps a held lock: renews it as [`Renewal`] says until the guard wants it no
/// more, then releases it.
pub(super) struct Keeper {
    pub(super) held: Box<dyn HeldLock>,
    pub(super) renewal: Renewal,
    pub(super) state: Arc<State>,
    pub(super) release_timeout: Duration,
    pub(super) done: oneshot::Sender<Result<Release, LockError>>,
}

impl Keeper {
    pub(super) async fn run(mut self) {
        let _on_death = OnDeath(Arc::clone(&self.state));
        self.keep().await;
        let result = self.release().await;
        if let Err(result) = self.done.send(result) {
            match result {
                Ok(release) => tracing::debug!(%release, "a dropped lock was released"),
                Err(error) => tracing::warn!(%error, "a dropped lock may be left behind"),
            }
        }
    }

    /// Renews until the guard wants the lock no more.
    async fn keep(&mut self) {
        let state = Arc::clone(&self.state);
        loop {
            let now = state.clock.now();
            match self.renewal.step(now) {
                Step::Wait { until } => {
                    tokio::select! {
                        () = state.stop_asked() => return,
                        () = tokio::time::sleep(sleep_until(until, now)) => {}
                    }
                }
                Step::Renew { deadline } => {
                    if self.renew(deadline.saturating_duration_since(now)).await {
                        return;
                    }
                }
                Step::Lost(loss) => {
                    state.lose(loss);
                    state.stop_asked().await;
                    return;
                }
            }
        }
    }

    /// Renews once and returns whether the guard wants the lock no more. A
    /// renewal under way is waited for even then, but not for long: one that
    /// arrives after the removal could bring the lock back.
    async fn renew(&mut self, budget: Duration) -> bool {
        let (answer, is_stopped) = {
            let mut call = std::pin::pin!(timeout(budget, self.held.renew()));
            tokio::select! {
                biased;
                answer = &mut call => (answer.ok(), false),
                () = self.state.stop_asked() => {
                    let rest = timeout(self.release_timeout / 2, call).await;
                    (rest.ok().and_then(Result::ok), true)
                }
            }
        };
        let now = self.state.clock.now();
        match answer {
            Some(Ok(granted)) => self.renewal.acknowledged(granted, now),
            Some(Err(RenewError::Lost(loss))) => self.renewal.gone(loss),
            Some(Err(RenewError::Failed(error))) => {
                tracing::warn!(%error, "a lock was not renewed");
                self.renewal.failed(now);
            }
            None => {
                tracing::warn!("the renewal of a lock was not answered in time");
                self.renewal.failed(now);
            }
        }
        match self.renewal.loss(now) {
            Some(loss) => self.state.lose(loss),
            None => self.state.extend(self.renewal.valid_until()),
        }
        is_stopped
    }

    async fn release(&mut self) -> Result<Release, LockError> {
        let was_lost = self.state.loss().is_some();
        match timeout(self.release_timeout, self.held.release()).await {
            Ok(Ok(Release::Released)) if was_lost => Ok(Release::Lapsed),
            Ok(result) => result,
            Err(_) => Err(LockError::new(
                LockErrorKind::Unreachable,
                "the lock's release was not answered in time: it may be left behind",
            )),
        }
    }
}

/// Makes a lock count as lost when the task that keeps it ends while it is still
/// wanted.
struct OnDeath(Arc<State>);

impl Drop for OnDeath {
    fn drop(&mut self) {
        if !self.0.is_stopped() {
            self.0.lose(Loss::Abandoned);
        }
    }
}
