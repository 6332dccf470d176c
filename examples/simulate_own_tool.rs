//! How to test a backup tool of your own against the simulated cluster.
//!
//! The tool here is a naive one of a hundred lines, and it shares nothing with
//! this crate's machine: it leases all stores, waits until every region that is
//! claimed has applied, and says that it holds. It is run with many seeds in
//! virtual time (tokio's clock is paused, so hours take seconds), the oracle
//! judges every run, and so does a property of our own.
//!
//! The naive tool is caught: a leader that was cut off from its peers claims its
//! region, has applied all it knows, and is believed, while the leader elected
//! in its place still has a command to commit. (A linearizable read served by
//! the leader after the wait would have told.)
//!
//! ```text
//! cargo run --release --no-default-features --features sim --example simulate_own_tool
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::region::{StoreId, WaitTarget};
use snapshot_prepare::sim::client::{SimCluster, SimReceiver, SimSender};
use snapshot_prepare::sim::fault::{FaultKind, FaultLevel, FaultPlan};
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::oracle::{Claimed, Verdict, Violation, judge};

const LEASE: Duration = Duration::from_secs(60);
const HOLD: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs = 300;
    let mut verdicts = BTreeMap::new();
    let mut caught: BTreeMap<&str, (u64, u64, String)> = BTreeMap::new();
    for seed in 1..=runs {
        let (verdict, violations) = run(seed)?;
        *verdicts.entry(format!("{verdict:?}")).or_insert(0) += 1;
        for Violation { property, message } in violations {
            let first = caught.entry(property).or_insert((0, seed, message));
            first.0 += 1;
        }
    }
    println!("{runs} runs of the naive tool said: {verdicts:?}");
    for (property, (times, seed, message)) in &caught {
        println!("violated {times} times: {property}\n  seed {seed} first: {message}");
    }
    // That is what this example is to show, so that it fails if it does not.
    for property in ["no false hold", "everybody is free afterwards"] {
        if !caught.contains_key(property) {
            return Err(format!("nobody caught the naive tool: {property}").into());
        }
    }
    Ok(())
}

/// Runs the tool once, with all that `seed` decides, and judges the run.
fn run(seed: u64) -> std::io::Result<(Verdict, Vec<Violation>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let layout = Layout::generate(3, 8, 3, seed);
    let faults = faults(seed);
    let warm_up = faults.warm_up;
    Ok(runtime.block_on(async {
        let cluster = SimCluster::start(&layout, faults, seed);
        tokio::time::sleep(warm_up).await;
        let verdict = NaiveTool::default().backup(&cluster).await;
        let claimed = Claimed {
            verdict,
            stores: layout.stores.iter().map(|store| store.id).collect(),
            lease: Some(LEASE),
            window: None,
            ..Claimed::default()
        };
        let mut violations = cluster.with_model(|model| judge(model, &claimed));
        violations.extend(everybody_is_free(&cluster).await);
        (verdict, violations)
    }))
}

/// What goes wrong: some kinds by name, and how fast the cluster is.
fn faults(seed: u64) -> FaultPlan {
    let mut plan = FaultPlan::derive(FaultLevel::Heavy, seed)
        .only(&[])
        .with(FaultKind::LostQuorum, 4)
        .with(FaultKind::StoreRestart, 1);
    plan.timing = Default::default();
    plan.warm_up = Duration::from_secs(4);
    plan.stop_after = Duration::from_secs(20);
    plan
}

/// A property of our own: shortly after the tool is done, no store is suspended
/// any more.
async fn everybody_is_free(cluster: &SimCluster) -> Option<Violation> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.with_model(|model| {
        let stores = model.stores();
        let left = stores.iter().find(|store| model.is_suspended(store.id))?;
        let message = format!("store {} is still suspended", left.id);
        Some(Violation::new("everybody is free afterwards", message))
    })
}

/// A tool that somebody may have written.
#[derive(Default)]
struct NaiveTool {
    streams: BTreeMap<StoreId, (SimSender, SimReceiver)>,
}

impl NaiveTool {
    async fn backup(mut self, cluster: &SimCluster) -> Verdict {
        // A failure ends it where it is. (It ought to clean up.)
        if self.prepare(cluster).await.is_err() {
            return Verdict::NotHeld;
        }
        // Here it says that it holds; the oracle has to know when.
        cluster.with_model(|model| model.note_hold(model.now()));
        tokio::time::sleep(HOLD).await;
        cluster.with_model(|model| model.note_finish(model.now()));
        match self.finish().await {
            Ok(true) => Verdict::Good,
            _ => Verdict::NotGood,
        }
    }

    async fn prepare(&mut self, cluster: &SimCluster) -> Result<(), Failure> {
        let stores = cluster.list_stores().await?;
        for store in &stores {
            let stream = cluster.open_stream(store).await?;
            self.streams.insert(store.id, stream);
        }
        for (sender, receiver) in self.streams.values_mut() {
            let seconds = LEASE.as_secs();
            sender.send(StreamRequest::UpdateLease { seconds }).await?;
            receiver.next().await?;
        }
        for store in &stores {
            let mut regions = Vec::new();
            let mut claims = cluster.list_claims(store).await?;
            while let Some(batch) = claims.next().await {
                regions.extend(batch?.into_iter().map(|claim| WaitTarget {
                    region_id: claim.region.id,
                    epoch: claim.region.epoch,
                }));
            }
            self.wait(store.id, regions).await?;
        }
        Ok(())
    }

    /// Waits until a store has applied all of what it claims.
    async fn wait(&mut self, store: StoreId, regions: Vec<WaitTarget>) -> Result<(), Failure> {
        let mut left = regions.len();
        let Some((sender, receiver)) = self.streams.get_mut(&store).filter(|_| left > 0) else {
            return Ok(());
        };
        sender.send(StreamRequest::WaitApply { regions }).await?;
        while left > 0 {
            for answer in receiver.next().await? {
                if let StreamAnswer::WaitApplyDone(answer) = answer {
                    let refused = |error| Failure::new(FailureKind::Other, format!("{error}"));
                    answer.result.map_err(refused)?;
                    left -= 1;
                }
            }
        }
        // And does not ask whether they are the leaders still.
        Ok(())
    }

    /// Lifts all leases; returns whether all had been in force.
    async fn finish(&mut self) -> Result<bool, Failure> {
        let mut all_valid = true;
        for (sender, receiver) in self.streams.values_mut() {
            sender.send(StreamRequest::Finish).await?;
            for answer in receiver.next().await? {
                if let StreamAnswer::LeaseUpdated {
                    last_lease_is_valid,
                } = answer
                {
                    all_valid &= last_lease_is_valid;
                }
            }
        }
        Ok(all_valid)
    }
}
