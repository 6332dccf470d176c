use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::Preparer;
use crate::clock::Clock;
use crate::cluster::ClusterClient;
use crate::error::Error;
use crate::machine::Config;

/// Resolves when the lock that guards the run is lost.
pub(super) struct LockLost(pub(super) Pin<Box<dyn Future<Output = ()> + Send>>);

impl fmt::Debug for LockLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockLost")
    }
}

/// Sets up a [`Preparer`]; made by [`Preparer::builder`].
#[derive(Debug)]
#[must_use]
pub struct Builder<C> {
    cluster: C,
    config: Config,
    is_isolated: bool,
    clock: Clock,
    lock_lost: Option<LockLost>,
}

impl<C: ClusterClient> Builder<C> {
    pub(super) fn new(cluster: C) -> Self {
        Self {
            cluster,
            config: Config::default(),
            is_isolated: false,
            clock: Clock::default(),
            lock_lost: None,
        }
    }

    /// Sets how the machine behaves.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Says whether everything runs on a thread and a tokio runtime of its own,
    /// `false` by default: it is spawned on the runtime that polls
    /// [`Preparer::prepare`].
    ///
    /// Isolated, nothing the program does can delay a renewal: a blocked
    /// runtime, a subscriber that keeps the progress borrowed, a logger on a
    /// full pipe. The price: what the cluster client itself logs and traces is
    /// not seen, and connections it opens for the driver live on that runtime
    /// and end with the run, so give the program's other calls a client of
    /// their own.
    pub fn isolated(mut self, is_isolated: bool) -> Self {
        self.is_isolated = is_isolated;
        self
    }

    /// Sets the clock by which leases and deadlines are judged.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets a future that resolves when the lock that guards the run is lost;
    /// before the hold this ends the run, during the hold it ends the hold, in
    /// both cases with [`ErrorKind::LockLost`](crate::error::ErrorKind::LockLost).
    /// It is polled where the driver runs, and dropped at the end of the run.
    pub fn lock_lost(mut self, lost: impl Future<Output = ()> + Send + 'static) -> Self {
        self.lock_lost = Some(LockLost(Box::pin(lost)));
        self
    }

    /// Returns the preparer. Nothing is dialled yet.
    ///
    /// # Errors
    /// See [`Config::validate`].
    pub fn build(self) -> Result<Preparer<C>, Error> {
        self.config.validate()?;
        Ok(Preparer::new(
            Arc::new(self.cluster),
            self.config,
            self.is_isolated,
            self.clock,
            self.lock_lost,
        ))
    }
}
