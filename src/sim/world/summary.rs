use std::collections::BTreeMap;
use std::time::Duration;

use super::floor::ratio;
use super::trace::combine;
use super::{Ended, Problem, Report, Share, Standstill, tell};
use crate::progress::PhaseName;
use crate::sim::fault::FaultKind;

/// The most problems that a summary tells in full.
const PROBLEMS_MAX: usize = 10;

/// What many runs have in common.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// Runs with a hold.
    pub held: u64,
    /// How they ended.
    pub outcomes: BTreeMap<Ended, u64>,
    /// How often each fault struck, by phase.
    pub strikes: BTreeMap<(FaultKind, PhaseName), u64>,
    /// How long stores were suspended, for each run that was good to the end.
    pub suspended: Vec<Duration>,
    /// How long it took from the start to the hold, for each run with one.
    pub prepared: Vec<Duration>,
    /// The standstill of each run that has a floor, with its seed.
    pub standstills: Vec<(u64, Standstill)>,
    /// Runs in which a property was violated.
    pub violated: u64,
    /// The first of them, with their last steps.
    pub problems: Vec<Problem>,
    /// Stands for all runs, in whatever order: the same seeds and options give
    /// the same number, in every build of the same source.
    pub hash: u64,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, report: Report) {
        self.runs += 1;
        self.held += u64::from(report.held);
        self.hash = combine(self.hash, report.setup.seed, report.hash);
        *self.outcomes.entry(report.ended).or_default() += 1;
        for (&key, count) in &report.strikes {
            *self.strikes.entry(key).or_default() += count;
        }
        if report.ended == Ended::Finished {
            self.suspended.extend(report.suspended_time);
        }
        self.prepared.extend(report.prepare_time);
        let seed = report.setup.seed;
        self.standstills
            .extend(report.standstill.map(|standstill| (seed, standstill)));
        if !report.violations.is_empty() {
            self.violated += 1;
            let highest = self.problems.last().map(|problem| problem.seed);
            let has_room = self.problems.len() < PROBLEMS_MAX;
            if has_room || highest.is_some_and(|highest| seed < highest) {
                self.problems.extend(tell(report.setup, false).problem());
                self.keep_first();
            }
        }
    }

    /// Adds the runs of another summary.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.held += other.held;
        self.violated += other.violated;
        self.hash = self.hash.wrapping_add(other.hash);
        for (ended, count) in other.outcomes {
            *self.outcomes.entry(ended).or_default() += count;
        }
        for (key, count) in other.strikes {
            *self.strikes.entry(key).or_default() += count;
        }
        self.suspended.extend(other.suspended);
        self.prepared.extend(other.prepared);
        self.standstills.extend(other.standstills);
        self.problems.extend(other.problems);
        self.keep_first();
    }

    fn keep_first(&mut self) {
        self.problems.sort_by_key(|problem| problem.seed);
        self.problems.truncate(PROBLEMS_MAX);
    }

    /// Returns how often each fault struck.
    pub fn strikes_by_kind(&self) -> BTreeMap<FaultKind, u64> {
        let mut by_kind = BTreeMap::new();
        for (&(kind, _), count) in &self.strikes {
            *by_kind.entry(kind).or_default() += count;
        }
        by_kind
    }

    /// Sums up the standstills; `None` when no run has a floor.
    pub fn standstill(&self) -> Option<StandstillSummary> {
        let mut ratios: Vec<(u64, u64)> = self
            .standstills
            .iter()
            .map(|(seed, standstill)| (standstill.per_mille(), *seed))
            .collect();
        ratios.sort_unstable();
        let &(worst, worst_seed) = ratios.last()?;
        let per_mille: Vec<u64> = ratios.iter().map(|&(ratio, _)| ratio).collect();
        let mut parts = [Share::default(); 4];
        for (_, standstill) in &self.standstills {
            for (sum, share) in parts.iter_mut().zip(&standstill.parts) {
                sum.took += share.took;
                sum.floor += share.floor;
            }
        }
        Some(StandstillSummary {
            runs: self.standstills.len() as u64,
            median: percentile(&per_mille, 50),
            high: percentile(&per_mille, 99),
            worst,
            worst_seed,
            parts,
        })
    }
}

/// How long many runs kept their stores suspended, against the least possible;
/// the ratios are in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StandstillSummary {
    /// Runs with a floor.
    pub runs: u64,
    /// The ratio that half of the runs do not pass.
    pub median: u64,
    /// The ratio that 99 % of the runs do not pass.
    pub high: u64,
    /// The highest ratio.
    pub worst: u64,
    /// The run with it.
    pub worst_seed: u64,
    /// The sums over all runs by part, named as in [`Standstill::PARTS`].
    pub parts: [Share; 4],
}

impl Share {
    /// Returns how many times the floor it took, in thousandths.
    pub fn per_mille(&self) -> u64 {
        ratio(self.took, self.floor)
    }
}

/// Returns the value that `percent` percent of the sorted values do not pass;
/// zero when there are none.
pub(super) fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let hundred: Vec<u64> = (1..=100).collect();
        let of = |values: &[u64]| [0, 50, 99, 100].map(|percent| percentile(values, percent));
        assert_eq!(of(&hundred), [1, 50, 99, 100]);
        assert_eq!(of(&[7]), [7; 4]);
        assert_eq!(of(&[]), [0; 4]);
        assert_eq!(percentile(&[1, 2, 3], 50), 2);
    }

    #[test]
    fn standstills_are_ordered_by_their_ratio() {
        let standstill = |took: u64, floor: u64| Standstill {
            took: Duration::from_millis(took),
            floor: Duration::from_millis(floor),
            parts: [Share {
                took: Duration::from_millis(took),
                floor: Duration::from_millis(floor),
            }; 4],
        };
        let summary = Summary {
            standstills: vec![
                (1, standstill(11, 10)),
                (2, standstill(40, 20)),
                (3, standstill(500, 500)),
            ],
            ..Summary::default()
        };
        let sums = summary.standstill().expect("there are some");
        assert_eq!((sums.runs, sums.median), (3, 1_100));
        assert_eq!((sums.high, sums.worst, sums.worst_seed), (2_000, 2_000, 2));
        assert_eq!(sums.parts[0].took, Duration::from_millis(551));
        assert_eq!(Summary::default().standstill(), None);
    }
}
