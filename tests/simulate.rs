//! Whole runs in virtual time, judged by the oracle.
#![cfg(feature = "sim")]

use snapshot_prepare::sim::fault::FaultLevel;
use snapshot_prepare::sim::world::{Ended, Options, Sizes, Summary, run_seed, simulate};

fn seeds(level: FaultLevel, count: u64) -> Summary {
    let from = match std::env::var("SIMULATE_FROM") {
        Ok(from) => from.parse().expect("SIMULATE_FROM is a number"),
        Err(_) => 0,
    };
    let count = match std::env::var("SIMULATE_COUNT") {
        Ok(count) => count.parse().expect("SIMULATE_COUNT is a number"),
        Err(_) => count,
    };
    let options = Options {
        seeds: from..=from + count - 1,
        level,
        sizes: Sizes::default(),
    };
    let summary = simulate(&options, |_| true);
    println!("{level}: {summary}");
    assert_eq!(summary.violated, 0, "{level}: {summary}");
    summary
}

#[test]
fn a_cluster_at_rest_is_always_held() {
    let summary = seeds(FaultLevel::None, 200);
    assert_eq!(summary.outcomes.get(&Ended::Finished), Some(&summary.runs));
}

#[test]
fn a_busy_cluster_is_nearly_always_held() {
    let summary = seeds(FaultLevel::Light, 300);
    assert!(summary.held * 100 >= summary.runs * 95, "{summary}");
}

#[test]
fn whatever_goes_wrong_nobody_is_deceived() {
    let summary = seeds(FaultLevel::Heavy, 200);
    assert!(summary.held * 2 > summary.runs, "{summary}");
}

#[test]
fn the_same_seed_goes_the_same_way() {
    let sizes = Sizes::default();
    for level in [FaultLevel::None, FaultLevel::Light, FaultLevel::Heavy] {
        for seed in 0..20 {
            let first = run_seed(seed, level, &sizes);
            let second = run_seed(seed, level, &sizes);
            let replay = first.replay();
            assert_eq!(first.hash, second.hash, "{replay}");
            assert_eq!(first.ended, second.ended, "{replay}");
        }
    }
}
