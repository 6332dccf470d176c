use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::task::{AbortHandle, JoinSet};
use tracing::Instrument as _;

use super::board::Board;
use super::inbox::{CallInput, CallSender};
use super::panic::panic_failure;
use crate::cluster::{Batches, ClusterClient};
use crate::error::{Failure, FailureKind};
use crate::machine::{Event, RequestId};
use crate::range::KeyRange;
use crate::region::{ReadTarget, Store, StoreId};

/// The most scans under way. The machine gives up on those that take too long.
const SCANS_MAX: usize = 1024;

/// What a call is for. Of each kind only so many are under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum CallKind {
    /// PD's list of stores: one at a time.
    Stores,
    /// PD's regions.
    Scan,
    /// A store's claims: one listing per store.
    Claims(StoreId),
    /// Leader reads at a store.
    Reads(StoreId),
}

/// The calls under way, a task each.
///
/// The machine gives up on a call that takes too long and makes another one,
/// but cannot say that it gave up, and a call that hangs hangs for ever. So of
/// each kind a bounded number is kept, and the oldest goes when there are more.
#[derive(Debug)]
pub(super) struct Calls<C> {
    cluster: Arc<C>,
    inputs: CallSender,
    board: Arc<Board>,
    reads_max: usize,
    running: BTreeMap<CallKind, BTreeMap<RequestId, AbortHandle>>,
}

impl<C: ClusterClient> Calls<C> {
    /// `window` is the most regions the machine asks of a store at once.
    pub(super) fn new(cluster: Arc<C>, inputs: CallSender, board: Arc<Board>, window: u32) -> Self {
        Self {
            cluster,
            inputs,
            board,
            // A read that the machine waits for holds a region of the window,
            // so what is beyond was given up; twice, to be on the safe side.
            reads_max: usize::try_from(window)
                .unwrap_or(usize::MAX)
                .saturating_mul(2),
            running: BTreeMap::new(),
        }
    }

    pub(super) fn list_stores(&mut self, tasks: &mut JoinSet<()>, request: RequestId) {
        let cluster = Arc::clone(&self.cluster);
        let inputs = self.inputs.clone();
        self.start(tasks, CallKind::Stores, request, async move {
            let stores = cluster.list_stores().await?;
            forward(&inputs, Event::StoresListed { request, stores }).await;
            Ok(())
        });
    }

    pub(super) fn scan_regions(
        &mut self,
        tasks: &mut JoinSet<()>,
        request: RequestId,
        range: KeyRange,
        limit: u32,
    ) {
        let cluster = Arc::clone(&self.cluster);
        let inputs = self.inputs.clone();
        self.start(tasks, CallKind::Scan, request, async move {
            let regions = cluster.scan_regions(range, limit).await?;
            forward(&inputs, Event::RegionsScanned { request, regions }).await;
            Ok(())
        });
    }

    pub(super) fn list_claims(
        &mut self,
        tasks: &mut JoinSet<()>,
        request: RequestId,
        store: Store,
    ) {
        let cluster = Arc::clone(&self.cluster);
        let inputs = self.inputs.clone();
        self.start(tasks, CallKind::Claims(store.id), request, async move {
            let mut listing = cluster.list_claims(&store).await?;
            let claimed = |claims, done| Event::RegionsClaimed {
                request,
                claims,
                done,
            };
            while let Some(batch) = listing.next().await {
                forward(&inputs, claimed(batch?, false)).await;
            }
            forward(&inputs, claimed(Vec::new(), true)).await;
            Ok(())
        });
    }

    pub(super) fn leader_read(
        &mut self,
        tasks: &mut JoinSet<()>,
        request: RequestId,
        store: Store,
        regions: Vec<ReadTarget>,
    ) {
        let cluster = Arc::clone(&self.cluster);
        let inputs = self.inputs.clone();
        self.start(tasks, CallKind::Reads(store.id), request, async move {
            let mut missing = regions.len();
            let mut reads = cluster.leader_reads(&store, regions).await?;
            while let Some(batch) = reads.next().await {
                let answers = batch?;
                missing = missing.saturating_sub(answers.len());
                forward(&inputs, Event::LeaderReadDone { request, answers }).await;
            }
            if missing == 0 {
                return Ok(());
            }
            // Saying so now saves the machine its deadline.
            Err(Failure::new(
                FailureKind::Malformed,
                format!("{missing} leader reads were not answered"),
            ))
        });
    }

    /// Forgets a call that is over.
    pub(super) fn ended(&mut self, kind: CallKind, request: RequestId) {
        if let Some(same) = self.running.get_mut(&kind) {
            same.remove(&request);
            if same.is_empty() {
                self.running.remove(&kind);
            }
        }
    }

    fn start(
        &mut self,
        tasks: &mut JoinSet<()>,
        kind: CallKind,
        request: RequestId,
        call: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) {
        let inputs = self.inputs.clone();
        let board = Arc::clone(&self.board);
        let work = async move {
            let result = AssertUnwindSafe(call)
                .catch_unwind()
                .await
                .unwrap_or_else(|panic| Err(panic_failure("a call", &*panic, &board)));
            if let Err(failure) = result {
                forward(&inputs, Event::RequestFailed { request, failure }).await;
            }
            // Fails only when the loop is gone, and then nobody wants to know.
            let _ = inputs.send(CallInput::Ended(kind, request)).await;
        };
        let task = tasks.spawn(work.instrument(span(kind)));
        let most = match kind {
            CallKind::Stores | CallKind::Claims(_) => 1,
            CallKind::Scan => SCANS_MAX,
            CallKind::Reads(_) => self.reads_max,
        };
        let same = self.running.entry(kind).or_default();
        same.insert(request, task);
        while same.len() > most {
            if let Some((_, oldest)) = same.pop_first() {
                oldest.abort();
            }
        }
    }
}

async fn forward(inputs: &CallSender, event: Event) {
    // Fails only when the loop is gone, and then nobody wants to know.
    let _ = inputs.send(CallInput::Event(event)).await;
}

fn span(kind: CallKind) -> tracing::Span {
    match kind {
        CallKind::Stores => tracing::debug_span!("list_stores"),
        CallKind::Scan => tracing::debug_span!("scan_regions"),
        CallKind::Claims(store_id) => tracing::debug_span!("list_claims", %store_id),
        CallKind::Reads(store_id) => tracing::debug_span!("leader_reads", %store_id),
    }
}
