use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{sleep, timeout};

use super::backend::{Backend, Contender, Place, value};
use super::dialer::Dialer;
use super::failure::{Failure, FailureKind};
use super::held::Held;
use crate::clock::Ticker;
use crate::lock::detached::Caller;
use crate::lock::guard::{Asked, LockGuard};
use crate::lock::renewal::{Renewal, Step, Timing};
use crate::lock::state::sleep_until;
use crate::lock::{LockConfig, LockError, LockErrorKind};
use crate::time::Timestamp;

/// One attempt to get the lock, which may wait.
pub(super) struct Acquisition {
    dialer: Arc<Dialer>,
    config: LockConfig,
    ttl: Duration,
    clock: Ticker,
    deadline: Timestamp,
    caller: Caller,
}

/// A lease, and when it was granted or last renewed.
struct Session {
    lease: i64,
    asked: Asked,
    granted: Duration,
    renewal: Renewal,
}

/// Why a session did not lead to the lock.
enum End {
    /// The lease or the key went away: there may be time for another session.
    Lost,
    /// It is decided.
    Failed(LockError),
}

/// What a look at the queue showed.
enum Look {
    /// Nobody is before us.
    First,
    /// Somebody was, who is gone now.
    Moved,
}

impl Acquisition {
    pub(super) fn new(
        dialer: Arc<Dialer>,
        config: LockConfig,
        ttl: Duration,
        wait: Duration,
        caller: Caller,
    ) -> Self {
        let clock = config.clock.start();
        Self {
            dialer,
            ttl,
            clock,
            deadline: clock.now() + wait,
            caller,
            config,
        }
    }

    /// Takes the lock, or leaves nothing behind.
    pub(super) async fn run(mut self) -> Result<LockGuard, LockError> {
        loop {
            let lease = random_lease()?;
            let mut backend = Backend::new(Arc::clone(&self.dialer), &self.config);
            let mut is_queued = false;
            let end = match self.session(&mut backend, lease, &mut is_queued).await {
                Ok((session, place)) => return Ok(self.guard(backend, session, place)),
                Err(end) => end,
            };
            self.clean_up(&mut backend, lease, is_queued).await;
            match end {
                End::Failed(error) => return Err(error),
                End::Lost if self.is_over() => {
                    return Err(LockError::new(
                        LockErrorKind::Unreachable,
                        "the lease on etcd ended before the lock was ours",
                    ));
                }
                End::Lost => tracing::warn!("a place in the queue for a lock was lost"),
            }
            self.pause(0).await;
        }
    }

    /// Goes all the way with one lease.
    async fn session(
        &mut self,
        backend: &mut Backend,
        lease: i64,
        is_queued: &mut bool,
    ) -> Result<(Session, Place), End> {
        let mut session = self.grant(backend, lease).await?;
        *is_queued = true;
        let (place, first) = self.enqueue(backend, lease).await?;
        if !first.is(&place) {
            if self.is_over() {
                return Err(self.refused(backend, first).await);
            }
            let holder = backend.describe(first, 1).await;
            let holder = holder.describe(SystemTime::now());
            tracing::info!(%holder, "waiting for a lock");
            self.wait(backend, &mut session, &place).await?;
        }
        // Everything so far took its time.
        match session.renewal.loss(self.clock.now()) {
            None => Ok((session, place)),
            Some(_) => Err(End::Lost),
        }
    }

    async fn grant(&mut self, backend: &mut Backend, lease: i64) -> Result<Session, End> {
        let mut failures = 0;
        loop {
            let (mut asked, mut sent) = (Asked::now(&self.config), self.clock.now());
            let mut granted = backend.grant(lease, self.ttl).await;
            if matches!(&granted, Err(failure) if failure.kind == FailureKind::LeaseExists) {
                // An answer was lost, and with it since when the lease counts.
                (asked, sent) = (Asked::now(&self.config), self.clock.now());
                granted = backend.keep_alive(lease).await;
            }
            match granted {
                Ok(granted) => {
                    let timing = Timing::from(&self.config);
                    let now = self.clock.now();
                    return Ok(Session {
                        lease,
                        asked,
                        granted,
                        renewal: Renewal::new(timing, sent, Some(granted), now),
                    });
                }
                Err(failure) => self.may_try_again(failure, &mut failures).await?,
            }
        }
    }

    async fn enqueue(
        &mut self,
        backend: &mut Backend,
        lease: i64,
    ) -> Result<(Place, Contender), End> {
        let mut failures = 0;
        loop {
            match backend.enqueue(lease, value(&self.config)).await {
                Ok(queued) => return Ok(queued),
                Err(failure) => self.may_try_again(failure, &mut failures).await?,
            }
        }
    }

    /// Waits until our place is the first, and makes sure of it.
    async fn wait(
        &mut self,
        backend: &mut Backend,
        session: &mut Session,
        place: &Place,
    ) -> Result<(), End> {
        let mut failures = 0;
        loop {
            let renew_at = self.keep(backend, session).await?;
            if self.caller.is_gone() {
                return Err(End::Failed(given_up()));
            }
            if self.is_over() {
                return self.last_look(backend, place).await;
            }
            let (clock, until) = (self.clock, renew_at.min(self.deadline));
            let looked = tokio::select! {
                looked = look(backend, place) => looked,
                () = self.caller.gone() => continue,
                () = wait_until(clock, until) => continue,
            };
            match looked {
                Ok(Look::First) => match self.confirm(backend, place).await {
                    Ok(()) => return Ok(()),
                    Err(failure) => self.may_try_again(failure, &mut failures).await?,
                },
                Ok(Look::Moved) => failures = 0,
                Err(failure) => self.may_try_again(failure, &mut failures).await?,
            }
        }
    }

    /// Renews the lease if that is due, and returns when it is due next.
    async fn keep(
        &mut self,
        backend: &mut Backend,
        session: &mut Session,
    ) -> Result<Timestamp, End> {
        loop {
            let now = self.clock.now();
            let deadline = match session.renewal.step(now) {
                Step::Lost(_) => return Err(End::Lost),
                Step::Wait { until } => return Ok(until),
                Step::Renew { deadline } => deadline,
            };
            let asked = Asked::now(&self.config);
            let budget = deadline.saturating_duration_since(now);
            let renewed = timeout(budget, backend.keep_alive(session.lease)).await;
            let now = self.clock.now();
            match renewed {
                Ok(Ok(granted)) => {
                    (session.asked, session.granted) = (asked, granted);
                    session.renewal.acknowledged(Some(granted), now);
                }
                Ok(Err(failure)) if failure.kind == FailureKind::LeaseGone => {
                    return Err(End::Lost);
                }
                Ok(Err(failure)) => {
                    tracing::debug!(?failure, "a lease was not renewed");
                    session.renewal.failed(now);
                }
                Err(_) => session.renewal.failed(now),
            }
        }
    }

    /// Checks that the key, now the first, is still there: its lease may have
    /// ended unnoticed.
    async fn confirm(&self, backend: &mut Backend, place: &Place) -> Result<(), Failure> {
        if backend.confirm(place, value(&self.config)).await? {
            return Ok(());
        }
        Err(Failure::new(FailureKind::LeaseGone, "the key is gone"))
    }

    /// The time is up: takes the lock if it has just become ours, and otherwise
    /// says who has it.
    async fn last_look(&mut self, backend: &mut Backend, place: &Place) -> Result<(), End> {
        match backend.first().await {
            Ok(Some(first)) if first.is(place) => {
                let confirmed = self.confirm(backend, place).await;
                confirmed.map_err(|failure| End::Failed(failure.into()))
            }
            Ok(Some(first)) => Err(self.refused(backend, first).await),
            Ok(None) => Err(End::Lost),
            Err(failure) => Err(End::Failed(failure.into())),
        }
    }

    async fn refused(&self, backend: &mut Backend, first: Contender) -> End {
        let holder = backend.describe(first, 1).await;
        let holders = [holder].into_iter().collect();
        End::Failed(LockError::held(holders, SystemTime::now()))
    }

    /// Pauses if the call may be made again, and otherwise says what is wrong.
    async fn may_try_again(&mut self, failure: Failure, failures: &mut u32) -> Result<(), End> {
        if failure.kind == FailureKind::LeaseGone {
            return Err(End::Lost);
        }
        if !failure.is_retryable() || self.is_over() {
            return Err(End::Failed(failure.into()));
        }
        tracing::debug!(?failure, "a call to etcd is made again");
        self.pause(*failures).await;
        *failures = failures.saturating_add(1);
        Ok(())
    }

    /// Waits longer with each failure, at the most until the time is up.
    async fn pause(&mut self, failures: u32) {
        let doubled = self
            .config
            .backoff_min
            .saturating_mul(2_u32.saturating_pow(failures));
        let until = self.clock.now() + doubled.min(self.config.backoff_max);
        let (clock, until) = (self.clock, until.min(self.deadline));
        tokio::select! {
            () = wait_until(clock, until) => {}
            () = self.caller.gone() => {}
        }
    }

    /// Returns whether nobody wants to wait any longer.
    fn is_over(&self) -> bool {
        self.caller.is_gone() || self.clock.now() >= self.deadline
    }

    fn guard(self, backend: Backend, session: Session, place: Place) -> LockGuard {
        let holder = place.holder(&value(&self.config));
        let fence = place.fence();
        let held = Held {
            backend,
            place,
            patience: self.config.release_timeout / 2,
        };
        let (asked, granted) = (session.asked, Some(session.granted));
        LockGuard::start(held, holder, fence, asked, granted, &self.config)
    }

    /// Removes what an acquisition that failed may have left: a lease alone does
    /// no harm, a key would stand in others' way.
    async fn clean_up(&self, backend: &mut Backend, lease: i64, is_queued: bool) {
        let cleaning = async {
            while let Err(failure) = remove(backend, lease, is_queued).await {
                if !is_queued || !failure.is_retryable() {
                    tracing::debug!(?failure, "a lease on etcd is left to end by itself");
                    return;
                }
                sleep(self.config.backoff_min).await;
            }
        };
        let cleaned = timeout(self.config.release_timeout, cleaning).await;
        if cleaned.is_err() {
            tracing::warn!("a key on etcd is left behind until its lease ends by itself");
        }
    }
}

/// Removes the key, which needs no right to end leases, and then the lease.
async fn remove(backend: &mut Backend, lease: i64, is_queued: bool) -> Result<(), Failure> {
    let removed = match is_queued {
        true => backend.remove_own(lease).await,
        false => Ok(()),
    };
    backend.revoke(lease).await.and(removed)
}

/// Looks who is right before us, and waits until that one is gone.
async fn look(backend: &mut Backend, place: &Place) -> Result<Look, Failure> {
    match backend.predecessor(place).await? {
        None => Ok(Look::First),
        Some(predecessor) => {
            backend.gone(&predecessor).await?;
            Ok(Look::Moved)
        }
    }
}

/// Waits until it is that time by this clock, which need not go like a timer's.
async fn wait_until(clock: Ticker, until: Timestamp) {
    loop {
        let now = clock.now();
        if now >= until {
            return;
        }
        sleep(sleep_until(until, now)).await;
    }
}

fn given_up() -> LockError {
    LockError::new(LockErrorKind::Other, "nobody waits for the lock any more")
}

/// Returns an id for a lease: random, so that no two are the same, positive as
/// etcd's own are.
fn random_lease() -> Result<i64, LockError> {
    use rand::TryRngCore;

    let random = rand::rngs::OsRng.try_next_u64().map_err(|error| {
        LockError::new(LockErrorKind::Other, "the system has no random numbers").with_source(error)
    })?;
    Ok(i64::try_from(random >> 1).unwrap_or(i64::MAX).max(1))
}
