use std::sync::Arc;
use std::time::Duration;

use super::acquisition::Acquisition;
use super::backend::Backend;
use super::config::EtcdConfig;
use super::dialer::Dialer;
use crate::lock::detached::detached;
use crate::lock::{
    BoxFuture, Holder, Holders, LockConfig, LockError, LockErrorKind, LockGuard, RunLock,
};

/// How long a lock outlives its last renewal unless the settings say.
const TTL: Duration = Duration::from_secs(30);

/// A lock on etcd; see the [module](super) for what it promises.
///
/// It holds no connection: each acquisition and each look has one of its own.
#[derive(Clone, Debug)]
pub struct EtcdLock {
    target: EtcdConfig,
    config: LockConfig,
    ttl: Duration,
}

impl EtcdLock {
    /// Returns the lock at `target`. Nothing is dialed.
    ///
    /// # Errors
    /// [`LockErrorKind::Config`]: see [`LockConfig::validate`]; or a file for TLS
    /// cannot be used.
    pub fn new(target: EtcdConfig, config: LockConfig) -> Result<Self, LockError> {
        let ttl = config.ttl.unwrap_or(TTL);
        let mut checked = config.clone();
        checked.ttl = Some(ttl);
        checked.validate()?;
        target.validate()?;
        Ok(Self {
            target,
            config,
            ttl,
        })
    }

    fn dialer(&self) -> Arc<Dialer> {
        Arc::new(Dialer::new(self.target.clone()))
    }

    async fn look(&self) -> Result<Holders, LockError> {
        let mut backend = Backend::new(self.dialer(), &self.config);
        Ok(match backend.first().await? {
            Some(first) => [backend.describe(first, 0).await].into_iter().collect(),
            None => Holders::default(),
        })
    }

    async fn remove(&self, id: &str) -> Result<Holder, LockError> {
        let mut backend = Backend::new(self.dialer(), &self.config);
        let first = backend.first().await?;
        let Some(first) = first.filter(|first| first.id() == id) else {
            return Err(not_that_holder(id));
        };
        let (key, revision) = (first.key().to_vec(), first.revision());
        match backend.remove(key, revision).await? {
            Ok(()) => Ok(first.into_holder()),
            Err(_) => Err(not_that_holder(id)),
        }
    }
}

fn not_that_holder(id: &str) -> LockError {
    let message = format!("the lock is not held by id {id}");
    LockError::new(LockErrorKind::NotThatHolder, message)
}

impl RunLock for EtcdLock {
    fn location(&self) -> String {
        self.target.location()
    }

    fn acquire(&self, wait: Duration) -> BoxFuture<'_, Result<LockGuard, LockError>> {
        let (dialer, config, ttl) = (self.dialer(), self.config.clone(), self.ttl);
        Box::pin(detached(move |caller| {
            Acquisition::new(dialer, config, ttl, wait, caller).run()
        }))
    }

    fn status(&self) -> BoxFuture<'_, Result<Holders, LockError>> {
        Box::pin(self.look())
    }

    fn break_lock<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Holder, LockError>> {
        Box::pin(self.remove(id))
    }
}
