use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{PutMode, UpdateVersion};

use super::family::{Family, Member, Shape, Side};
use super::look::holder_of;
use super::metadata::Metadata;
use super::options::StorageOptions;
use super::shelf::{Put, Seen, Shelf};
use super::txn_id::TxnId;
use crate::lock::{
    BoxFuture, HeldLock, Holder, HolderKind, LockError, LockErrorKind, Loss, Release, RenewError,
};

/// The lock object as its holder sees it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) shelf: Arc<Shelf>,
    pub(super) family: Family,
    pub(super) options: StorageOptions,
    pub(super) txn: TxnId,
    pub(super) target: Path,
    pub(super) metadata: Metadata,
    pub(super) version: UpdateVersion,
    pub(super) lease: Option<Duration>,
    /// An announcement that has still to be withdrawn.
    pub(super) leftover: Option<Path>,
    pub(super) release_timeout: Duration,
}

/// Whose the object in the lock's place is.
enum Place {
    Ours(Seen),
    Empty,
    Other(Box<Holder>),
}

impl Held {
    async fn look(&self) -> Result<Place, LockError> {
        let Some(seen) = self.shelf.read(&self.target).await? else {
            return Ok(Place::Empty);
        };
        let content = Metadata::parse(&seen.content);
        if let Ok(metadata) = &content
            && metadata.txn_id == Some(self.txn)
        {
            return Ok(Place::Ours(seen));
        }
        let member = self.family.member(&self.target).unwrap_or(Member {
            side: Side::Plain,
            shape: Shape::Lock,
        });
        let holder = holder_of(member, &seen.meta, Some(&content));
        Ok(Place::Other(Box::new(holder)))
    }

    /// A lock that does not expire is only looked at.
    async fn look_after(&mut self) -> Result<Option<Duration>, RenewError> {
        match self.look().await.map_err(RenewError::Failed)? {
            Place::Ours(_) => Ok(None),
            Place::Empty => Err(RenewError::Lost(Loss::Removed)),
            Place::Other(holder) => Err(RenewError::Lost(Loss::TakenOver(holder))),
        }
    }

    /// Replaces the lock by itself with a later end, if it is still the version
    /// we know.
    async fn extend(&mut self, lease: Duration) -> Result<Option<Duration>, RenewError> {
        // A second time when the first shows that we know an old version of our
        // own lock: a renewal whose answer was lost had acted.
        for _ in 0..2 {
            let now = self.options.wall_clock.now();
            let metadata = self.metadata.clone().expiring(lease, now);
            let mode = PutMode::Update(self.version.clone());
            match self
                .shelf
                .put(&self.target, &metadata.to_json(), mode)
                .await
            {
                Put::Done(version) => {
                    self.version = version;
                    return Ok(Some(lease));
                }
                Put::Refused => {}
                Put::Unsupported(error) | Put::Failed(error) | Put::Doubtful(error) => {
                    return Err(RenewError::Failed(error));
                }
            }
            match self.look().await.map_err(RenewError::Failed)? {
                Place::Ours(seen) => self.version = seen.version(),
                Place::Empty => return Err(RenewError::Lost(Loss::Removed)),
                Place::Other(holder) => return Err(RenewError::Lost(Loss::TakenOver(holder))),
            }
        }
        let message = "the lock changes faster than it can be renewed";
        let error = LockError::new(LockErrorKind::Unreachable, message);
        Err(RenewError::Failed(error))
    }

    /// Removes the lock if it is ours.
    ///
    /// The stores have no delete under a condition that all share, so there is a
    /// moment between the look and the removal. With a lease nobody can take the
    /// lock over in it: it is renewed first, by a write that only succeeds on our
    /// own lock.
    async fn remove(&mut self) -> Result<Release, LockError> {
        self.shelf.settle_late(self.release_timeout / 4).await;
        let mut was_deleted = false;
        loop {
            match self.look().await? {
                Place::Empty if was_deleted => return Ok(Release::Released),
                Place::Empty => return Ok(Release::AlreadyGone),
                // After a removal whose answer was lost, it is the next one's.
                Place::Other(_) if was_deleted => return Ok(Release::Released),
                Place::Other(holder) if holder.kind == HolderKind::Broken => {
                    return Err(damaged(*holder));
                }
                Place::Other(holder) => return Ok(Release::TakenOver(holder)),
                Place::Ours(seen) => self.version = seen.version(),
            }
            if let Some(lease) = self.lease {
                match self.extend(lease.max(self.release_timeout * 2)).await {
                    Ok(_) => {}
                    Err(RenewError::Failed(error)) => return Err(error),
                    // Seen and judged at the next look.
                    Err(RenewError::Lost(_)) => continue,
                }
            }
            match self.shelf.delete_once(&self.target).await {
                Ok(()) => return Ok(Release::Released),
                Err(error) if super::failure::is_transient(error.kind()) => was_deleted = true,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(self.shelf.backoff_min()).await;
        }
    }

    async fn withdraw(&mut self) {
        if let Some(intent) = self.leftover.take()
            && let Err(error) = self.shelf.delete_own(&intent).await
        {
            tracing::warn!(%error, "an announcement may be left behind");
        }
    }
}

fn damaged(holder: Holder) -> LockError {
    let message = format!(
        "the own lock object was damaged and is left in place; break it by its id {}",
        holder.id
    );
    LockError::new(LockErrorKind::Broken, message).with_holders([holder].into_iter().collect())
}

impl HeldLock for Held {
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>> {
        Box::pin(async {
            self.withdraw().await;
            match self.lease {
                Some(lease) => self.extend(lease).await,
                None => self.look_after().await,
            }
        })
    }

    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>> {
        Box::pin(async {
            let result = self.remove().await;
            self.withdraw().await;
            result
        })
    }
}
