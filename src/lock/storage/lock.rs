use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::{Instant, sleep};

use super::attempt::{Attempt, Refusal, Taken};
use super::failure::is_transient;
use super::family::Family;
use super::held::Held;
use super::look::{holders, identify, members, tell};
use super::options::StorageOptions;
use super::shelf::{Pages, Shelf};
use super::support::Support;
use super::txn_id::TxnId;
use crate::lock::detached::{Caller, detached};
use crate::lock::{
    BoxFuture, Holder, HolderKind, Holders, LockConfig, LockError, LockErrorKind, LockGuard,
    RunLock,
};

/// A lock that is an object on storage; see the [module](super).
#[derive(Clone, Debug)]
pub struct StorageLock {
    location: String,
    family: Family,
    shelf: Arc<Shelf>,
    support: Arc<Support>,
    config: LockConfig,
    options: StorageOptions,
}

impl StorageLock {
    /// Returns the lock whose object lies at `path` in the store. Nothing is
    /// asked of the store yet.
    ///
    /// # Errors
    /// [`LockErrorKind::Config`] when the path names no object; see
    /// [`LockConfig::validate`] for the rest.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        path: &str,
        config: LockConfig,
        options: StorageOptions,
    ) -> Result<Self, LockError> {
        config.validate()?;
        let family = Family::new(path, options.mode)?;
        Ok(Self {
            location: format!("{} on {store}", family.prefix()),
            shelf: Arc::new(Shelf::new(store, None, &config)),
            family,
            support: Arc::default(),
            config,
            options,
        })
    }

    /// Lists by the lock's own prefix through `pages`, which has to be the same
    /// store. Worth it where many other objects lie beside the lock.
    #[must_use]
    pub fn with_pages(
        mut self,
        store: Arc<dyn ObjectStore>,
        pages: Arc<dyn PaginatedListStore>,
    ) -> Self {
        self.shelf = Arc::new(Shelf::new(store, Some(Pages(pages)), &self.config));
        self
    }

    /// Sets how the lock is named in messages.
    #[must_use]
    pub(super) fn named(mut self, location: String) -> Self {
        self.location = location;
        self
    }

    /// Tries until the time is up or nobody waits any more.
    async fn wait(self, wait: Duration, mut caller: Caller) -> Result<LockGuard, LockError> {
        let begun = Instant::now();
        let mut jitter = Jitter::new(&self.config)?;
        loop {
            let refused = match self.attempt().await {
                Ok(guard) => return Ok(guard),
                Err(refused) => refused,
            };
            let (patience, error) = match refused {
                // Others who are about to take the lock too: one try later we
                // know who got it.
                Refusal::Blocked(view) if view.has_only_intents() => (
                    wait.max(self.options.settle),
                    view.refusal(self.options.wall_clock.now()),
                ),
                Refusal::Blocked(view) => (wait, view.refusal(self.options.wall_clock.now())),
                Refusal::Failed(error) if is_transient(error.kind()) => (wait, error),
                Refusal::Failed(error) => return Err(error),
            };
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() || caller.is_gone() {
                return Err(error);
            }
            tokio::select! {
                () = sleep(jitter.next().min(left)) => {}
                () = caller.gone() => return Err(error),
            }
        }
    }

    async fn attempt(&self) -> Result<LockGuard, Refusal> {
        let txn = TxnId::random()?;
        let attempt = Attempt {
            shelf: &self.shelf,
            family: &self.family,
            config: &self.config,
            options: &self.options,
            support: &self.support,
            txn,
        };
        let taken = attempt.run().await?;
        let guard = self.guard(txn, taken);
        // The acquisition may have taken longer than what was granted.
        match guard.ensure_held() {
            Ok(()) => Ok(guard),
            Err(_) => {
                drop(guard.release().await);
                let message = "the lock was taken, but it took longer than it lasts";
                Err(LockError::new(LockErrorKind::Unreachable, message).into())
            }
        }
    }

    fn guard(&self, txn: TxnId, taken: Taken) -> LockGuard {
        let kind = match self.family.member(&taken.target) {
            Some(member) => member.kind(),
            None => HolderKind::Lock,
        };
        let mut holder = Holder::new(kind, txn.to_string(), taken.target.to_string());
        tell(&mut holder, &taken.metadata);
        let held = Held {
            shelf: Arc::clone(&self.shelf),
            family: self.family.clone(),
            options: self.options.clone(),
            txn,
            target: taken.target,
            metadata: taken.metadata,
            version: taken.version,
            lease: taken.lease,
            leftover: taken.leftover,
            release_timeout: self.config.release_timeout,
        };
        LockGuard::start(held, holder, None, taken.asked, taken.lease, &self.config)
    }

    /// Deletes all objects of the holder with this id, if they are still what was
    /// seen.
    async fn break_holder(&self, id: &str) -> Result<Holder, LockError> {
        let mut broken = None;
        for (member, meta) in members(&self.shelf, &self.family).await? {
            let identified = identify(&self.shelf, member, &meta, true).await?;
            if let Some((holder, _)) = identified
                && is_id_of(&holder.id, id)
            {
                self.shelf.delete_once(&meta.location).await?;
                // The lock itself tells more than an announcement.
                broken.get_or_insert(holder);
            }
        }
        broken.ok_or_else(|| {
            let message = format!("no holder of {} has the id {id:?}", self.location);
            LockError::new(LockErrorKind::NotThatHolder, message)
        })
    }
}

/// Returns whether `given` is this id, in any of the forms in which tools write it.
fn is_id_of(id: &str, given: &str) -> bool {
    id == given || TxnId::parse(given).is_some_and(|given| TxnId::parse(id) == Some(given))
}

impl RunLock for StorageLock {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn acquire(&self, wait: Duration) -> BoxFuture<'_, Result<LockGuard, LockError>> {
        let lock = self.clone();
        Box::pin(detached(move |caller| lock.wait(wait, caller)))
    }

    fn status(&self) -> BoxFuture<'_, Result<Holders, LockError>> {
        Box::pin(holders(&self.shelf, &self.family))
    }

    fn break_lock<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Holder, LockError>> {
        Box::pin(self.break_holder(id))
    }
}

/// The pauses between attempts: growing, and at random, so that contenders who
/// met once do not meet again.
struct Jitter {
    random: ChaCha8Rng,
    longest: Duration,
    limit: Duration,
}

impl Jitter {
    fn new(config: &LockConfig) -> Result<Self, LockError> {
        let seed = match config.seed {
            Some(seed) => seed,
            None => TxnId::random()?.seed(),
        };
        Ok(Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            longest: config.backoff_min,
            limit: config.backoff_max.min(Duration::from_secs(2)),
        })
    }

    fn next(&mut self) -> Duration {
        let pause = self.longest.mul_f64(self.random.random_range(0.2..1.0));
        self.longest = (self.longest * 2).min(self.limit.max(self.longest));
        pause
    }
}
