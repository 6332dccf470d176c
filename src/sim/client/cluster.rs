use super::reads::{SimClaims, SimReads};
use super::stream::{self, SimReceiver, SimSender};
use crate::cluster::ClusterClient;
use crate::error::{Failure, FailureKind};
use crate::range::KeyRange;
use crate::region::{ReadTarget, ScannedRegion, Store};
use crate::sim::fault::FaultPlan;
use crate::sim::hub::{Call, Hub};
use crate::sim::layout::Layout;
use crate::sim::mapping::from_status;
use crate::sim::model::{Answer, Cluster, Request};

/// A simulated cluster and a client of it; a cheap handle.
///
/// The model's time passes with tokio's clock until the last handle, call and
/// stream is dropped.
#[derive(Clone, Debug)]
pub struct SimCluster {
    hub: Hub,
}

impl SimCluster {
    /// Starts a cluster with `layout` that goes through `faults`, on the runtime
    /// of the caller.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    pub fn start(layout: &Layout, faults: FaultPlan, seed: u64) -> Self {
        Self {
            hub: Hub::start(layout, faults, seed),
        }
    }

    /// Looks at the model, or changes it, at the present moment, which is its
    /// [`Cluster::now`]: to ask the oracle, or to let something go wrong.
    pub fn with_model<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        self.hub.with_model(look)
    }

    /// Asks PD for its timestamp (`pdpb.PD/GetMinTS`).
    ///
    /// # Errors
    /// A [`Failure`] when PD's leader gave no usable answer.
    ///
    /// # Cancel safety
    /// Dropping the future drops the call.
    pub async fn min_ts(&self) -> Result<u64, Failure> {
        match self.ask(Request::MinTs).await? {
            Answer::MinTs(timestamp) => Ok(timestamp),
            _ => Err(unexpected()),
        }
    }

    /// Makes a call that has one answer.
    async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        match Call::new(&self.hub, request).only().await {
            Some(Answer::End(status)) => Err(from_status(status)),
            Some(answer) => Ok(answer),
            None => Err(unexpected()),
        }
    }
}

impl ClusterClient for SimCluster {
    type Claims = SimClaims;
    type Reads = SimReads;
    type Sender = SimSender;
    type Receiver = SimReceiver;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        match self.ask(Request::ListStores).await? {
            Answer::Stores(stores) => Ok(stores),
            _ => Err(unexpected()),
        }
    }

    async fn scan_regions(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> Result<Vec<ScannedRegion>, Failure> {
        match self.ask(Request::ScanRegions { range, limit }).await? {
            Answer::Regions(regions) => Ok(regions),
            _ => Err(unexpected()),
        }
    }

    async fn list_claims(&self, store: &Store) -> Result<SimClaims, Failure> {
        let request = Request::ListClaims { store: store.id };
        Ok(SimClaims::new(Call::new(&self.hub, request)))
    }

    async fn leader_reads(
        &self,
        store: &Store,
        targets: Vec<ReadTarget>,
    ) -> Result<SimReads, Failure> {
        Ok(SimReads::start(&self.hub, store.id, targets))
    }

    async fn open_stream(&self, store: &Store) -> Result<(SimSender, SimReceiver), Failure> {
        let call = Call::new(&self.hub, Request::OpenStream { store: store.id });
        stream::open(call).await
    }
}

/// Says that an answer came that does not belong to the call.
pub(super) fn unexpected() -> Failure {
    Failure::new(
        FailureKind::Malformed,
        "the model answered something else than it was asked",
    )
}
