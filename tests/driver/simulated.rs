//! Whole runs over the simulated cluster, on paused time.

use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::driver::{Clock, HoldGuard, PrepareError, Preparer};
use snapshot_prepare::error::ErrorKind;
use snapshot_prepare::machine::Config;
use snapshot_prepare::region::StoreId;
use snapshot_prepare::sim::client::SimCluster;
use snapshot_prepare::sim::fault::{FaultLevel, FaultPlan};
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::oracle::{Claimed, Verdict, judge};

use crate::until_no_task_is_left;

const LEASE: Duration = Duration::from_secs(20);

/// A run of one seed, up to the hold or its failure.
struct Run {
    cluster: SimCluster,
    prepared: Result<HoldGuard, PrepareError>,
}

async fn prepare(level: FaultLevel, seed: u64) -> Run {
    let layout = Layout::generate(3, 60, 3, seed);
    let faults = FaultPlan::derive(level, seed);
    println!("{faults}");
    let cluster = SimCluster::start(&layout, faults, seed);
    let config = Config {
        lease: LEASE,
        seed,
        ..Config::default()
    };
    let preparer = Preparer::builder(cluster.clone())
        .config(config)
        .clock(Clock::Tokio)
        .build()
        .expect("a sound configuration");
    Run {
        cluster,
        prepared: preparer.prepare().await,
    }
}

/// Returns the seeds to run: those that `DRIVER_SEED` names (`7` or `0..100`),
/// or else the first `count`.
fn seeds(count: u64) -> Vec<u64> {
    let number = |text: &str| {
        text.parse::<u64>()
            .expect("DRIVER_SEED is a number or A..B")
    };
    match std::env::var("DRIVER_SEED") {
        Ok(named) => match named.split_once("..") {
            Some((from, to)) => (number(from)..number(to)).collect(),
            None => vec![number(&named)],
        },
        Err(_) => (0..count).collect(),
    }
}

fn announce(level: FaultLevel, seed: u64) {
    println!("{level:?} seed {seed}; replay with DRIVER_SEED={seed} and the name of this test");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_is_held_and_finished_well() {
    for seed in seeds(5) {
        announce(FaultLevel::None, seed);
        let run = prepare(FaultLevel::None, seed).await;
        let guard = run.prepared.expect("held");
        assert_eq!(guard.report().regions, 60);
        assert_eq!(guard.report().attempt, 1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        guard.ensure_valid().expect("renewed in time");
        let report = guard.finish().await.expect("a good verdict");
        assert_eq!(report.released().count(), 3);
        drop(run.cluster);
        until_no_task_is_left().await;
    }
}

/// Holds for a while and finishes. Returns what the run says of itself.
async fn hold_and_finish(cluster: &SimCluster, guard: HoldGuard) -> (Verdict, Vec<StoreId>) {
    cluster.with_model(|model| model.note_hold(model.now()));
    let stores = guard.report().stores.iter().map(|(id, _)| *id).collect();
    let early = tokio::time::timeout(Duration::from_secs(30), guard.lost()).await;
    assert_eq!(early.is_ok(), guard.ensure_valid().is_err());
    cluster.with_model(|model| model.note_finish(model.now()));
    let verdict = match (early, guard.finish().await) {
        (Err(_), Ok(_)) => Verdict::Good,
        (Err(_), Err(error)) => {
            println!("not finished well: {error}");
            Verdict::NotGood
        }
        (Ok(early), Err(error)) => {
            assert_eq!(early, *error.error());
            println!("lost: {error}");
            Verdict::NotGood
        }
        (Ok(early), Ok(_)) => panic!("a good verdict after {early:?}"),
    };
    (verdict, stores)
}

#[tokio::test(start_paused = true)]
async fn every_run_ends_and_says_what_is_true() {
    let mut seen = BTreeMap::new();
    for (level, count) in [(FaultLevel::Light, 4), (FaultLevel::Heavy, 8)] {
        for seed in seeds(count) {
            announce(level, seed);
            let run = prepare(level, seed).await;
            let (verdict, stores) = match run.prepared {
                Ok(guard) => hold_and_finish(&run.cluster, guard).await,
                Err(error) => {
                    println!("not held: {error}");
                    assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}");
                    assert!(error.report().is_some(), "it ran");
                    (Verdict::NotHeld, Vec::new())
                }
            };
            *seen.entry(format!("{verdict:?}")).or_insert(0) += 1;
            // Long enough for every lease to have lapsed.
            tokio::time::sleep(LEASE * 2).await;
            let claimed = Claimed {
                verdict,
                stores,
                lease: Some(LEASE),
                window: Some(Config::default().window),
                ..Claimed::default()
            };
            let violations = run.cluster.with_model(|model| judge(model, &claimed));
            assert_eq!(violations, [], "{level:?} seed {seed}");
            drop(run.cluster);
            until_no_task_is_left().await;
        }
    }
    println!("{seen:?}");
    if std::env::var_os("DRIVER_SEED").is_none() {
        // Without both kinds of ends the seeds above would test little.
        assert!(seen.contains_key("Good") && seen.len() > 1, "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_leaves_no_store_suspended() {
    for seed in seeds(5) {
        announce(FaultLevel::None, seed);
        let run = prepare(FaultLevel::None, seed).await;
        drop(run.prepared.expect("held"));
        // A store that were suspended still would show as a foreign lease.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let preparer = Preparer::builder(run.cluster.clone())
            .clock(Clock::Tokio)
            .build()
            .expect("a sound configuration");
        let guard = preparer.prepare().await.expect("held");
        assert_eq!(guard.report().foreign_leases, []);
        guard.finish().await.expect("a good verdict");
        drop(run.cluster);
        until_no_task_is_left().await;
    }
}
