//! The suspended time in the model, against the least possible and against a
//! coordinator that works in rounds. It is virtual time: the same on any machine.

use super::{Budget, is_full};
use crate::support::standstill::{Seed, percentile, run};

/// Runs, and what `BUDGETS_FULL=1` makes of them.
const SEEDS: u64 = 2_000;
const SEEDS_FULL: u64 = 20_000;

pub(crate) fn measure() -> Vec<Budget> {
    let seeds = run(1..=if is_full() { SEEDS_FULL } else { SEEDS });
    let floors: Vec<f64> = seeds
        .iter()
        .filter_map(|seed| Some(seed.ours?.per_mille() as f64 / 1_000.0))
        .collect();
    println!(
        "standstill, {} runs with a floor: {:.2} of it at the worst",
        floors.len(),
        percentile(floors.iter().copied(), 100)
    );
    let median = percentile(floors.iter().copied(), 50);
    let high = percentile(floors.iter().copied(), 99);
    vec![
        Budget::exact("floor_median", median, 1.15),
        Budget::exact("floor_p99", high, 1.5),
        Budget::exact("rounds_median", against_rounds(&seeds), 0.5),
    ]
}

/// Over the runs in which a region failed at least once, in either way of going
/// about it.
fn against_rounds(seeds: &[Seed]) -> f64 {
    let ratios = |chosen: &dyn Fn(&&Seed) -> bool| -> Vec<f64> {
        let chosen = seeds.iter().filter(|seed| chosen(seed));
        chosen.filter_map(Seed::against_rounds).collect()
    };
    let tell = |which: &str, ratios: &[f64]| {
        println!(
            "against rounds, {} runs {which}: median {:.3}, 99 % below {:.3}",
            ratios.len(),
            percentile(ratios.iter().copied(), 50),
            percentile(ratios.iter().copied(), 99)
        );
    };
    let theirs = |seed: &Seed| seed.theirs.is_some_and(|ran| ran.failed);
    let failed = ratios(&|seed| seed.has_failed());
    tell("in which none failed", &ratios(&|seed| !seed.has_failed()));
    tell(
        "in which a region failed both ways",
        &ratios(&|seed| seed.has_retried && theirs(seed)),
    );
    tell("in which a region failed in either", &failed);
    percentile(failed, 50)
}
