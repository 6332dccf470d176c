use std::time::Duration;

use object_store::path::Path;
use object_store::{PutMode, UpdateVersion};
use tokio::time::{Instant, sleep};

use super::family::Family;
use super::look::{View, look};
use super::metadata::Metadata;
use super::options::StorageOptions;
use super::shelf::{Put, Shelf};
use super::support::Support;
use super::txn_id::TxnId;
use crate::lock::{Asked, LockConfig, LockError, LockErrorKind};

/// How long an announcement stands. Who announced must have the lock by then, or
/// gives up.
const INTENT_LEASE: Duration = Duration::from_secs(120);

/// One attempt to take the lock.
///
/// It follows the steps of those who have no conditional writes, so that they and
/// we exclude each other at every point: look, announce, look again, put the lock
/// in place, withdraw the announcement. Whoever announces before the other's
/// second look is seen by it, and of two announcements one comes first; so at
/// most one gets past its second look. The lock is put in place atomically where
/// the store can do that, which also excludes those who announce nothing, and is
/// read back afterwards, since they write blindly.
pub(super) struct Attempt<'a> {
    pub(super) shelf: &'a Shelf,
    pub(super) family: &'a Family,
    pub(super) config: &'a LockConfig,
    pub(super) options: &'a StorageOptions,
    pub(super) support: &'a Support,
    pub(super) txn: TxnId,
}

/// The lock, taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) asked: Asked,
    pub(super) metadata: Metadata,
    pub(super) target: Path,
    pub(super) version: UpdateVersion,
    /// For how long it was granted, `None` when it does not expire.
    pub(super) lease: Option<Duration>,
    /// An announcement that could not be withdrawn.
    pub(super) leftover: Option<Path>,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Others are in the way.
    Blocked(Box<View>),
    Failed(LockError),
}

impl From<LockError> for Refusal {
    fn from(error: LockError) -> Self {
        Self::Failed(error)
    }
}

impl Attempt<'_> {
    /// Tries once. Nothing is left behind when it fails, as far as the storage
    /// can be reached.
    pub(super) async fn run(&self) -> Result<Taken, Refusal> {
        unblocked(self.look().await?)?;
        let begun = Instant::now();
        let result = self.announced(begun).await;
        let intent = self.family.intent(self.txn);
        let withdrawn = self.shelf.delete_own(&intent).await;
        match (result, withdrawn) {
            (Ok(mut taken), withdrawn) => {
                taken.leftover = withdrawn.err().map(|_| intent);
                Ok(taken)
            }
            (Err(refusal), Ok(())) => Err(refusal),
            (Err(refusal), Err(error)) => {
                tracing::warn!(%error, "an announcement may be left behind");
                Err(refusal)
            }
        }
    }

    async fn look(&self) -> Result<View, LockError> {
        look(self.shelf, self.family, self.options, self.txn).await
    }

    /// Everything that happens under the announcement.
    async fn announced(&self, begun: Instant) -> Result<Taken, Refusal> {
        self.announce().await?;
        let view = unblocked(self.look().await?)?;
        if view.announced.is_none() {
            let message = "the storage does not list what was just written, so nobody can tell \
                           by it who else wants the lock";
            return Err(LockError::new(LockErrorKind::Unsupported, message).into());
        }
        for stale in &view.stale_intents {
            // The name is that of one acquisition, so nobody else's is hit.
            self.shelf.delete_own(stale).await?;
        }
        if begun.elapsed() >= INTENT_LEASE {
            let message = "the acquisition took too long";
            return Err(LockError::new(LockErrorKind::Unreachable, message).into());
        }
        let result = self.place(view).await;
        if result.is_err() {
            self.take_back().await;
        }
        result
    }

    /// Announces that we want the lock, and finds out what the store can do.
    async fn announce(&self) -> Result<(), LockError> {
        let now = self.options.wall_clock.now();
        let metadata = Metadata::new(self.config, self.txn, now).expiring(INTENT_LEASE, now);
        let intent = self.family.intent(self.txn);
        self.support
            .announce(self.shelf, &intent, &metadata.to_json())
            .await
    }

    /// Puts the lock in place: where there is none, or in the place of one that
    /// has expired, of exactly the version that was read.
    async fn place(&self, view: View) -> Result<Taken, Refusal> {
        let can_update = match self.config.ttl.is_some() || view.expired.is_some() {
            true => self.can_update().await?,
            false => false,
        };
        let mode = match &view.expired {
            None if self.support.can_create() => PutMode::Create,
            None => PutMode::Overwrite,
            Some((version, _)) if can_update => PutMode::Update(version.clone()),
            // Nobody but its holder, or whoever breaks it, can tell that it is
            // still the version that was read.
            Some((_, holder)) => {
                let mut holder = holder.clone();
                holder.note = Some("expired, but this storage cannot replace it safely".to_owned());
                let mut view = View::default();
                view.blockers.push(holder);
                return Err(Refusal::Blocked(Box::new(view)));
            }
        };
        let now = self.options.wall_clock.now();
        let mut metadata = Metadata::new(self.config, self.txn, now);
        let lease = self.config.ttl.filter(|_| can_update);
        if let Some(lease) = lease {
            metadata = metadata.expiring(lease, now);
        } else if self.config.ttl.is_some() {
            tracing::warn!("this storage cannot renew a lock, so it does not expire by itself");
        }
        let target = self.family.target(self.txn);
        let asked = Asked::now(self.config);
        let put = self.shelf.put(&target, &metadata.to_json(), mode).await;
        let doubt = match put {
            Put::Done(_) => None,
            // An earlier try of ours may have acted: the read-back tells.
            Put::Refused => {
                let message = "something was in the lock's place that the storage does not list, \
                               or does not list any more";
                Some(LockError::new(LockErrorKind::Unreachable, message))
            }
            Put::Doubtful(error) => {
                self.shelf.settle_late(self.config.call_timeout).await;
                Some(error)
            }
            Put::Unsupported(error) | Put::Failed(error) => return Err(error.into()),
        };
        self.confirm(doubt, |version| Taken {
            asked,
            metadata,
            target,
            version,
            lease,
            leftover: None,
        })
        .await
    }

    async fn can_update(&self) -> Result<bool, LockError> {
        let intent = self.family.intent(self.txn);
        self.support.can_update(self.shelf, &intent).await
    }

    /// Waits for those who announced meanwhile to see our lock and go, and reads
    /// it back: whoever writes blindly may have replaced it.
    async fn confirm(
        &self,
        doubt: Option<LockError>,
        taken: impl FnOnce(UpdateVersion) -> Taken,
    ) -> Result<Taken, Refusal> {
        let deadline = Instant::now() + self.options.settle;
        let mut pause = self.config.backoff_min;
        let mut view = loop {
            let view = self.look().await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if view.intents == 0 || left.is_zero() {
                break view;
            }
            sleep(pause.min(left)).await;
            pause *= 2;
        };
        match view.ours.take() {
            // Who still announces has seen our lock, or will.
            Some(version) if view.has_only_intents() => Ok(taken(version)),
            None if view.blockers.is_empty() => Err(doubt
                .unwrap_or_else(|| {
                    let message = "the lock was removed while it was being taken";
                    LockError::new(LockErrorKind::Unreachable, message)
                })
                .into()),
            _ => Err(Refusal::Blocked(Box::new(view))),
        }
    }

    fn is_ours(&self, content: &[u8]) -> bool {
        Metadata::parse(content).is_ok_and(|metadata| metadata.txn_id == Some(self.txn))
    }

    /// Removes a lock that may have been put in place, should it be ours.
    async fn take_back(&self) {
        self.shelf.settle_late(self.config.release_timeout).await;
        let target = self.family.target(self.txn);
        let result = match self.shelf.read(&target).await {
            Ok(Some(seen)) if self.is_ours(&seen.content) => self.shelf.delete_once(&target).await,
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "a lock that was not taken may be left behind");
        }
    }
}

fn unblocked(view: View) -> Result<View, Refusal> {
    match view.blockers.is_empty() {
        true => Ok(view),
        false => Err(Refusal::Blocked(Box::new(view))),
    }
}
