use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::backend::{Backend, Place};
use super::failure::{Failure, FailureKind};
use crate::lock::{BoxFuture, HeldLock, LockError, Loss, Release, RenewError};

/// How long to wait before a release is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// The lock as its holder's guard sees it: a place in the queue, which is the
/// first, and the lease that it is bound to.
pub(super) struct Held {
    pub(super) backend: Backend,
    pub(super) place: Place,
    /// For how long a release is tried again when etcd does not answer.
    pub(super) patience: Duration,
}

impl Held {
    /// Renews the lease, then looks whether the key is still there: somebody may
    /// have deleted it while the lease lives on.
    async fn renew_now(&mut self) -> Result<Option<Duration>, RenewError> {
        let granted = match self.backend.keep_alive(self.place.lease).await {
            Ok(granted) => granted,
            Err(failure) if failure.kind == FailureKind::LeaseGone => {
                return Err(RenewError::Lost(self.loss().await));
            }
            Err(failure) => return Err(RenewError::Failed(failure.into())),
        };
        match self.backend.first().await {
            Ok(Some(first)) if first.is(&self.place) => Ok(Some(granted)),
            Ok(Some(other)) => {
                let other = Box::new(other.into_holder());
                Err(RenewError::Lost(Loss::TakenOver(other)))
            }
            Ok(None) => Err(RenewError::Lost(Loss::Removed)),
            Err(failure) => Err(RenewError::Failed(failure.into())),
        }
    }

    /// Returns how the lock was lost, whose lease is gone.
    async fn loss(&mut self) -> Loss {
        match self.backend.first().await {
            Ok(Some(other)) if !other.is(&self.place) => {
                Loss::TakenOver(Box::new(other.into_holder()))
            }
            _ => Loss::Removed,
        }
    }

    /// Removes the key and ends the lease, again and again while etcd does not
    /// answer and there is patience left.
    async fn release_now(&mut self) -> Result<Release, LockError> {
        let started = Instant::now();
        loop {
            match self.try_release().await {
                Err(failure) if failure.is_retryable() && started.elapsed() < self.patience => {
                    sleep(PAUSE).await;
                }
                Err(failure) => {
                    let context = "the lock may be left behind, until its lease ends by itself";
                    return Err(failure.within(context).into());
                }
                Ok(release) => return Ok(release),
            }
        }
    }

    async fn try_release(&mut self) -> Result<Release, Failure> {
        let Place {
            key,
            lease,
            revision,
        } = self.place.clone();
        let removed = self.backend.remove(key, revision).await;
        // Whatever became of the key, nothing needs the lease any more.
        let revoked = self.backend.revoke(lease).await;
        match (removed, revoked) {
            (Ok(removed), revoked) => {
                if let Err(failure) = revoked {
                    tracing::warn!(?failure, "a lease on etcd is left to end by itself");
                }
                Ok(match removed {
                    Ok(()) => Release::Released,
                    Err(None) => Release::AlreadyGone,
                    Err(Some(other)) => Release::TakenOver(Box::new(other.into_holder())),
                })
            }
            // We may not delete the key, but it went with its lease.
            (Err(failure), Ok(was_there)) if !failure.is_retryable() => Ok(match was_there {
                true => Release::Released,
                false => Release::AlreadyGone,
            }),
            (Err(failure), _) => Err(failure),
        }
    }
}

impl HeldLock for Held {
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>> {
        Box::pin(self.renew_now())
    }

    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>> {
        Box::pin(self.release_now())
    }
}
