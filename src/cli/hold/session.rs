use std::ffi::OsString;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::during::{During, End};
use super::observer::Observer;
use super::patience::patiently;
use super::verdict::{abandoned, after_hold, cancelled, interrupted, not_prepared, with_remarks};
use super::watch::Watch;
use crate::cli::down::down_hint;
use crate::cli::lock::LockLost;
use crate::cli::output::{Reporter, RunResult};
use crate::cli::process::{ReadyFile, Signals, name_of};
use crate::cluster::ClusterClient;
use crate::driver::{HoldGuard, PrepareError, Preparer};
use crate::error::{ErrorKind, Failure};
use crate::machine::Config;
use crate::progress::PhaseName;
use crate::region::{Store, StoreId};

/// The cluster to hold.
#[derive(Debug)]
pub(crate) struct Target<C, T> {
    pub(crate) cluster: C,
    pub(crate) cluster_id: u64,
    /// Asks PD for its timestamp; polled when the hold has begun.
    pub(crate) min_ts: T,
    pub(crate) observer: Arc<dyn Observer>,
}

/// What to do with it.
#[derive(Debug)]
pub(crate) struct HoldPlan {
    pub(crate) config: Config,
    /// The command to run during the hold; empty for none.
    pub(crate) command: Vec<OsString>,
    /// How long to hold without a command; `None` until a signal comes.
    pub(crate) hold_for: Option<Duration>,
    pub(crate) ready: ReadyFile,
    /// What resolves when the lock of the run is lost, if it has one.
    pub(crate) lock_lost: Option<LockLost>,
}

/// What came of preparing.
enum Prepared {
    Held(HoldGuard),
    /// A signal came when the hold was just beginning.
    HeldTooLate(HoldGuard, Signal),
    Failed(PrepareError),
    /// A signal came before the hold.
    Interrupted(PrepareError, Signal),
    Abandoned,
}

/// Prepares, holds, runs the command, releases, and returns the verdict.
pub(crate) async fn prepare_and_hold<C, T>(
    target: Target<C, T>,
    mut plan: HoldPlan,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult
where
    C: ClusterClient + Clone,
    T: Future<Output = Result<u64, Failure>>,
{
    let lease = plan.config.lease;
    let mut builder = Preparer::builder(target.cluster.clone())
        .config(plan.config.clone())
        .isolated(true);
    if let Some(lock) = plan.lock_lost.take() {
        builder = builder.lock_lost(lock.lost());
    }
    let mut preparer = match builder.build() {
        Ok(preparer) => preparer,
        Err(error) => return not_prepared(reporter, &error, None),
    };
    let progress = preparer.progress();
    let watch = Watch::start(reporter.clone(), progress.clone(), preparer.notices());
    let result = match prepare(preparer, reporter, signals).await {
        Prepared::Held(guard) => {
            target.observer.held(guard.report());
            let mut during = During {
                guard: &guard,
                cluster_id: target.cluster_id,
                plan: &mut plan,
                reporter,
                signals,
            };
            let end = during.hold(target.min_ts).await;
            release(guard, &end, lease, &*target.observer, reporter, signals).await
        }
        Prepared::HeldTooLate(guard, signal) => {
            let stores: Vec<StoreId> = stores_in(&guard);
            match patiently(guard.abort(), signals, reporter, true).await {
                Some(report) => interrupted(signal, &report),
                None => abandoned(false, stores, lease),
            }
        }
        Prepared::Failed(error) => {
            let mut result = not_prepared(reporter, &error, error.report());
            if error.kind() == ErrorKind::Unreachable
                && let (Some(id), Some(message)) = (error.store_id(), &mut result.message)
            {
                message.push_str(&hint_of(&target.cluster, id).await);
            }
            result
        }
        Prepared::Interrupted(error, signal) => cancelled(reporter, signal, &error, error.report()),
        Prepared::Abandoned => {
            let suspended = progress.borrow().phase != PhaseName::Connect;
            let stores = if suspended {
                stores_of(&target.cluster).await
            } else {
                Vec::new()
            };
            return abandoned(false, stores, lease);
        }
    };
    watch.finish().await;
    result
}

async fn prepare<C: ClusterClient>(
    preparer: Preparer<C>,
    reporter: &Reporter,
    signals: &mut Signals,
) -> Prepared {
    let canceller = preparer.canceller();
    let mut prepared = pin!(preparer.prepare());
    let signal = tokio::select! {
        biased;
        prepared = &mut prepared => return match prepared {
            Ok(guard) => Prepared::Held(guard),
            Err(error) => Prepared::Failed(error),
        },
        signal = signals.next() => {
            reporter.note(format!("{}: releasing what is suspended", name_of(signal)));
            canceller.cancel();
            signal
        }
    };
    match patiently(prepared, signals, reporter, true).await {
        Some(Ok(guard)) => Prepared::HeldTooLate(guard, signal),
        Some(Err(error)) => Prepared::Interrupted(error, signal),
        None => Prepared::Abandoned,
    }
}

/// Ends the hold and returns what it comes to.
async fn release(
    guard: HoldGuard,
    end: &End,
    lease: Duration,
    observer: &dyn Observer,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let report = guard.report().clone();
    let stores = stores_in(&guard);
    observer.finishing();
    let result = match patiently(guard.finish(), signals, reporter, false).await {
        Some(finished) => {
            observer.finished(finished.is_ok());
            after_hold(reporter, end, finished)
        }
        None => abandoned(true, stores, lease),
    };
    with_remarks(result, &report)
}

fn stores_in(guard: &HoldGuard) -> Vec<StoreId> {
    guard.report().stores.iter().map(|(id, _)| *id).collect()
}

/// Returns the stores that may be suspended, if PD tells at once.
async fn stores_of(cluster: &impl ClusterClient) -> Vec<StoreId> {
    let stores = listed(cluster).await;
    let taking_part = stores.iter().filter(|store| store.takes_part());
    taking_part.map(|store| store.id).collect()
}

/// Returns what PD knows of a store that could not be reached.
async fn hint_of(cluster: &impl ClusterClient, id: StoreId) -> String {
    let stores = listed(cluster).await;
    let store = stores.iter().find(|store| store.id == id);
    store.map_or(String::new(), down_hint)
}

/// Lists the stores, none if PD does not tell at once.
async fn listed(cluster: &impl ClusterClient) -> Vec<Store> {
    match timeout(Duration::from_secs(1), cluster.list_stores()).await {
        Ok(Ok(stores)) => stores,
        _ => Vec::new(),
    }
}
