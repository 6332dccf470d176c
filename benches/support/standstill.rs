//! The suspended time of the same runs in the model, once with this crate's
//! machine and once with a coordinator that works in rounds.

use std::ops::RangeInclusive;
use std::thread;

use snapshot_prepare::sim::fault::FaultLevel;
use snapshot_prepare::sim::world::{self, Options, Standstill};

use super::rounds;

/// What came of one seed.
pub(crate) struct Seed {
    /// The machine's, where it has a floor: a good hold in the first attempt.
    pub(crate) ours: Option<Standstill>,
    pub(crate) theirs: Option<rounds::Ran>,
    /// Whether a region failed at least once in the machine's run.
    pub(crate) has_retried: bool,
}

impl Seed {
    /// Returns whether a good hold came of it both ways.
    pub(crate) fn is_good(&self) -> bool {
        self.ours.is_some() && self.theirs.is_some()
    }

    /// Returns the machine's suspended time as a multiple of the other's.
    pub(crate) fn against_rounds(&self) -> Option<f64> {
        let (ours, theirs) = (self.ours?.took, self.theirs?.suspended);
        Some(ours.as_secs_f64() / theirs.as_secs_f64())
    }

    /// Returns whether a region failed at least once in either run.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_retried || self.theirs.is_some_and(|ran| ran.failed)
    }
}

/// Goes through the seeds, with light faults.
pub(crate) fn run(seeds: RangeInclusive<u64>) -> Vec<Seed> {
    let middle = seeds.start() + (seeds.end() - seeds.start()) / 2;
    let (first, second) = (*seeds.start()..=middle, middle + 1..=*seeds.end());
    thread::scope(|scope| {
        let first = scope.spawn(|| first.map(run_seed).collect::<Vec<_>>());
        let second: Vec<_> = second.map(run_seed).collect();
        let mut all = first.join().expect("it does not panic");
        all.extend(second);
        all
    })
}

/// Carries out one seed both ways.
pub(crate) fn run_seed(seed: u64) -> Seed {
    let options = Options {
        level: FaultLevel::Light,
        ..Options::default()
    };
    let setup = options.setup(seed);
    let theirs = rounds::run(&setup);
    let ours = world::run(setup);
    assert!(
        ours.violations.is_empty(),
        "seed {seed}: {:?}",
        ours.violations
    );
    Seed {
        ours: ours.standstill,
        theirs,
        has_retried: ours.retried,
    }
}

/// Returns the value that `percent` percent of the values do not pass; no number
/// when there are none.
pub(crate) fn percentile(values: impl IntoIterator<Item = f64>, percent: usize) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
