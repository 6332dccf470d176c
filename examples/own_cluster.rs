//! Implements the traits of `cluster` for a transport of one's own, and runs a
//! hold over it.
//!
//! The 'transport' here is a queue to one make-believe store in the same
//! process. What matters is the shape: each call is made once, nothing is
//! repeated, nothing has a time limit, and everything may be dropped at any
//! await. `cluster::conformance` holds a test suite for implementations.
//!
//! ```text
//! cargo run --no-default-features --features driver --example own_cluster
//! ```

use std::error::Error;
use std::time::Duration;

use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::driver::Preparer;
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, ReadTarget, Region, RegionEpoch, RegionId,
    ScannedRegion, Store, StoreId, WaitAnswer,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

const STORE: StoreId = StoreId(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let guard = Preparer::builder(OwnCluster).build()?.prepare().await?;
    println!(
        "held: {} region(s), valid for {:?} unless renewed",
        guard.report().regions,
        guard.remaining()
    );
    tokio::select! {
        lost = guard.lost() => return Err(lost.into()),
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    let report = guard.finish().await?;
    println!("finished well, suspended for {:?}", report.suspended_time);
    Ok(())
}

/// A cluster with one store that leads one region.
struct OwnCluster;

impl ClusterClient for OwnCluster {
    type Claims = Once<Claim>;
    type Reads = Once<ReadAnswer>;
    type Sender = OwnSender;
    type Receiver = OwnReceiver;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        Ok(vec![Store {
            id: STORE,
            address: "in-process".to_owned(),
            ..Store::default()
        }])
    }

    async fn scan_regions(&self, _: KeyRange, _: u32) -> Result<Vec<ScannedRegion>, Failure> {
        Ok(vec![ScannedRegion {
            region: region(),
            leader: Some(STORE),
        }])
    }

    async fn list_claims(&self, _: &Store) -> Result<Once<Claim>, Failure> {
        Ok(Once(vec![Claim {
            region: region(),
            has_pending_admin: false,
        }]))
    }

    async fn leader_reads(
        &self,
        _: &Store,
        targets: Vec<ReadTarget>,
    ) -> Result<Once<ReadAnswer>, Failure> {
        let answers = targets.into_iter().map(|target| ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result: Ok(()),
        });
        Ok(Once(answers.collect()))
    }

    async fn open_stream(&self, _: &Store) -> Result<(OwnSender, OwnReceiver), Failure> {
        let (requests, incoming) = mpsc::unbounded_channel();
        let (outgoing, answers) = mpsc::unbounded_channel();
        tokio::spawn(serve(incoming, outgoing));
        Ok((OwnSender(requests), OwnReceiver(answers)))
    }
}

/// Everything in one batch.
struct Once<T>(Vec<T>);

impl<T: Send + 'static> Batches<T> for Once<T> {
    async fn next(&mut self) -> Option<Result<Vec<T>, Failure>> {
        let all = std::mem::take(&mut self.0);
        (!all.is_empty()).then_some(Ok(all))
    }
}

struct OwnSender(mpsc::UnboundedSender<StreamRequest>);

impl PrepareSender for OwnSender {
    async fn send(&mut self, request: StreamRequest) -> Result<(), Failure> {
        self.0.send(request).map_err(|_| closed())
    }
}

struct OwnReceiver(mpsc::UnboundedReceiver<Result<StreamAnswer, Failure>>);

impl PrepareReceiver for OwnReceiver {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        let answer = self.0.recv().await.ok_or_else(closed)?;
        Ok(vec![answer?])
    }
}

fn closed() -> Failure {
    Failure::new(FailureKind::Transport, "the queue is closed")
}

/// The store's side of a prepare stream.
async fn serve(
    mut requests: mpsc::UnboundedReceiver<StreamRequest>,
    answers: mpsc::UnboundedSender<Result<StreamAnswer, Failure>>,
) {
    let mut leased_until: Option<Instant> = None;
    while let Some(request) = requests.recv().await {
        let is_leased = leased_until.is_some_and(|until| Instant::now() < until);
        let updated = Ok(StreamAnswer::LeaseUpdated {
            last_lease_is_valid: is_leased,
        });
        // The receiver may be gone; the store does not mind.
        match request {
            StreamRequest::UpdateLease { seconds } => {
                leased_until = Some(Instant::now() + Duration::from_secs(seconds));
                let _ = answers.send(updated);
            }
            StreamRequest::WaitApply { regions } => {
                for target in regions {
                    let _ = answers.send(Ok(StreamAnswer::WaitApplyDone(WaitAnswer {
                        target: Some(target),
                        result: Ok(()),
                    })));
                }
            }
            StreamRequest::Finish => {
                leased_until = None;
                let _ = answers.send(updated);
                let _ = answers.send(Err(Failure::new(FailureKind::Finished, "finished")));
            }
        }
    }
}

fn region() -> Region {
    Region {
        id: RegionId(2),
        range: KeyRange::whole(),
        epoch: RegionEpoch {
            conf_ver: 1,
            version: 1,
        },
        peers: vec![Peer {
            id: PeerId(3),
            store_id: STORE,
            role: PeerRole::Voter,
        }],
    }
}
