//! Whole runs over the simulated cluster, on paused time.

use std::time::Duration;

use snapshot_prepare::driver::{Clock, HoldGuard, PrepareError, Preparer};
use snapshot_prepare::error::ErrorKind;
use snapshot_prepare::machine::Config;
use snapshot_prepare::sim::client::SimCluster;
use snapshot_prepare::sim::fault::{FaultLevel, FaultPlan};
use snapshot_prepare::sim::layout::Layout;

use crate::until_no_task_is_left;

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
        lease: Duration::from_secs(20),
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

/// Returns the seeds to run: those of `DRIVER_SEED`, when it is set, or the
/// first `count`.
fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("DRIVER_SEED") {
        Ok(seed) => vec![seed.parse().expect("DRIVER_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

fn announce(level: FaultLevel, seed: u64) {
    println!("{level:?} seed {seed}; replay with DRIVER_SEED={seed} and the name of this test");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_is_held_and_finished_well() {
    for seed in seeds(10) {
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

#[tokio::test(start_paused = true)]
async fn every_run_ends_and_says_how() {
    let (mut held, mut lost) = (0, 0);
    for level in [FaultLevel::Light, FaultLevel::Heavy] {
        for seed in seeds(15) {
            announce(level, seed);
            let run = prepare(level, seed).await;
            let report = match run.prepared {
                Ok(guard) => {
                    held += 1;
                    let watch = guard.lost();
                    let early = tokio::time::timeout(Duration::from_secs(30), watch).await;
                    match (early, guard.finish().await) {
                        (Ok(early), Err(error)) => {
                            lost += 1;
                            assert_eq!(early, *error.error());
                            error.report().clone()
                        }
                        (Err(_), Ok(report)) => report,
                        (Err(_), Err(error)) => {
                            lost += 1;
                            error.report().clone()
                        }
                        (Ok(early), Ok(_)) => panic!("a good verdict after {early:?}"),
                    }
                }
                Err(error) => {
                    assert_ne!(error.kind(), ErrorKind::Internal, "{error:?}");
                    error.report().expect("it ran").clone()
                }
            };
            println!("{report:?}");
            drop(run.cluster);
            until_no_task_is_left().await;
        }
    }
    println!("{held} held, {lost} of them lost");
    if std::env::var_os("DRIVER_SEED").is_none() {
        assert!(held >= 15, "so few holds test little: {held}");
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
