use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::config::LockConfig;
use super::detached::{Caller, detached};
use super::error::{LockError, LockErrorKind};
use super::guard::{Asked, LockGuard};
use super::held::{BoxFuture, HeldLock, Loss, Release, RenewError};
use super::holder::{Holder, HolderKind, Holders};
use super::run_lock::RunLock;
use super::state::sleep_until;
use crate::clock::Ticker;
use crate::time::Timestamp;

/// A lock in the memory of this process, for tests: it excludes those who share
/// it, which [`MemoryLock::contender`] makes.
#[derive(Clone, Debug)]
pub struct MemoryLock {
    place: Arc<Place>,
    config: LockConfig,
}

/// Where the lock lies.
#[derive(Debug)]
struct Place {
    clock: Ticker,
    slot: Mutex<Slot>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counts the acquisitions.
    fence: u64,
    taken: Option<Taken>,
}

#[derive(Debug)]
struct Taken {
    holder: Holder,
    expires: Timestamp,
}

impl MemoryLock {
    /// Returns a free lock.
    ///
    /// # Errors
    /// See [`LockConfig::validate`].
    pub fn new(config: LockConfig) -> Result<Self, LockError> {
        config.validate()?;
        let place = Arc::new(Place {
            clock: config.clock.start(),
            slot: Mutex::default(),
            freed: Notify::new(),
        });
        Ok(Self { place, config })
    }

    /// Returns somebody else who wants the same lock.
    ///
    /// # Errors
    /// See [`LockConfig::validate`].
    pub fn contender(&self, config: LockConfig) -> Result<Self, LockError> {
        config.validate()?;
        let place = Arc::clone(&self.place);
        Ok(Self { place, config })
    }

    /// Takes the lock if it is free.
    fn attempt(&self) -> Result<LockGuard, LockError> {
        let asked = Asked::now(&self.config);
        let mut slot = self.place.slot();
        if let Some(taken) = &slot.taken {
            let holders = [taken.holder.clone()].into_iter().collect();
            return Err(LockError::held(holders, SystemTime::now()));
        }
        slot.fence += 1;
        let fence = slot.fence;
        let holder = self.holder(fence);
        slot.taken = Some(Taken {
            holder: holder.clone(),
            expires: self.place.end(self.config.ttl),
        });
        drop(slot);
        let held = Held {
            place: Arc::clone(&self.place),
            id: holder.id.clone(),
            ttl: self.config.ttl,
        };
        let ttl = self.config.ttl;
        Ok(LockGuard::start(
            held,
            holder,
            Some(fence),
            asked,
            ttl,
            &self.config,
        ))
    }

    fn holder(&self, fence: u64) -> Holder {
        let now = SystemTime::now();
        let config = &self.config;
        let mut holder = Holder::new(HolderKind::Lock, format!("memory-{fence}"), "memory");
        holder.host = Some(config.host.clone());
        holder.pid = Some(u64::from(config.pid));
        holder.since = Some(now);
        holder.expires_at = config.ttl.and_then(|ttl| now.checked_add(ttl));
        holder.purpose = Some(config.purpose.clone());
        holder.hint = Some(config.hint.clone());
        holder
    }

    /// Tries until the time is up or nobody waits any more.
    async fn wait(self, wait: Duration, mut caller: Caller) -> Result<LockGuard, LockError> {
        let deadline = self.place.clock.now() + wait;
        loop {
            // Before the attempt, so that no wake-up is missed.
            let mut freed = std::pin::pin!(self.place.freed.notified());
            freed.as_mut().enable();
            let refused = match self.attempt() {
                Ok(guard) => return Ok(guard),
                Err(error) => error,
            };
            let now = self.place.clock.now();
            if now >= deadline || caller.is_gone() {
                return Err(refused);
            }
            let until = deadline.min(self.place.expires());
            tokio::select! {
                _ = timeout(sleep_until(until, now), freed) => {}
                () = caller.gone() => {}
            }
        }
    }
}

impl RunLock for MemoryLock {
    fn location(&self) -> String {
        "memory".to_owned()
    }

    fn acquire(&self, wait: Duration) -> BoxFuture<'_, Result<LockGuard, LockError>> {
        let lock = self.clone();
        Box::pin(detached(move |caller| lock.wait(wait, caller)))
    }

    fn status(&self) -> BoxFuture<'_, Result<Holders, LockError>> {
        let slot = self.place.slot();
        let holders = slot.taken.iter().map(|taken| taken.holder.clone());
        let holders = holders.collect();
        drop(slot);
        Box::pin(std::future::ready(Ok(holders)))
    }

    fn break_lock<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Holder, LockError>> {
        let broken = match self.place.take(id) {
            Some(taken) => Ok(taken.holder),
            None => Err(LockError::new(
                LockErrorKind::NotThatHolder,
                format!("no holder has the id {id}"),
            )),
        };
        Box::pin(std::future::ready(broken))
    }
}

impl Place {
    /// Returns the slot, empty if its lock has expired.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        slot.taken.take_if(|taken| taken.expires <= now);
        slot
    }

    /// Returns the end of a lock that is granted now.
    fn end(&self, ttl: Option<Duration>) -> Timestamp {
        ttl.map_or(Timestamp::MAX, |ttl| self.clock.now() + ttl)
    }

    /// Returns when the present lock expires.
    fn expires(&self) -> Timestamp {
        let slot = self.slot();
        slot.taken
            .as_ref()
            .map_or(Timestamp::ZERO, |taken| taken.expires)
    }

    /// Frees the lock if the holder has this id.
    fn take(&self, id: &str) -> Option<Taken> {
        let taken = self.slot().taken.take_if(|taken| taken.holder.id == id)?;
        self.freed.notify_waiters();
        Some(taken)
    }

    /// Returns who has the lock instead of `id`.
    fn other(&self, id: &str) -> Option<Box<Holder>> {
        let slot = self.slot();
        let other = slot.taken.as_ref().filter(|taken| taken.holder.id != id);
        other.map(|taken| Box::new(taken.holder.clone()))
    }
}

/// The lock as its holder's guard sees it.
#[derive(Debug)]
struct Held {
    place: Arc<Place>,
    id: String,
    ttl: Option<Duration>,
}

impl Held {
    fn renew_now(&self) -> Result<Option<Duration>, RenewError> {
        let end = self.place.end(self.ttl);
        let mut slot = self.place.slot();
        match &mut slot.taken {
            None => Err(RenewError::Lost(Loss::Removed)),
            Some(taken) if taken.holder.id == self.id => {
                taken.expires = end;
                Ok(self.ttl)
            }
            Some(other) => {
                let holder = Box::new(other.holder.clone());
                Err(RenewError::Lost(Loss::TakenOver(holder)))
            }
        }
    }

    fn release_now(&self) -> Release {
        match (self.place.take(&self.id), self.place.other(&self.id)) {
            (Some(_), _) => Release::Released,
            (None, Some(other)) => Release::TakenOver(other),
            (None, None) => Release::AlreadyGone,
        }
    }
}

impl HeldLock for Held {
    fn renew(&mut self) -> BoxFuture<'_, Result<Option<Duration>, RenewError>> {
        Box::pin(std::future::ready(self.renew_now()))
    }

    fn release(&mut self) -> BoxFuture<'_, Result<Release, LockError>> {
        Box::pin(std::future::ready(Ok(self.release_now())))
    }
}
