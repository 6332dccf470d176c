use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Ended, Problem, Report, Setup, Sizes, run, run_traced};
use crate::progress::PhaseName;
use crate::sim::fault::{FaultKind, FaultLevel};

/// The most problems that a summary tells in full.
const PROBLEMS_MAX: usize = 10;

/// What to simulate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The seeds, one run each.
    pub seeds: RangeInclusive<u64>,
    /// How much goes wrong.
    pub level: FaultLevel,
    /// How large the clusters are.
    pub sizes: Sizes,
    /// The only kinds of faults that strike; all of the level when empty.
    pub only: Vec<FaultKind>,
    /// The kinds of faults that do not strike.
    pub without: Vec<FaultKind>,
}

impl Options {
    /// Draws the run of one seed.
    pub fn setup(&self, seed: u64) -> Setup {
        let mut setup = Setup::derive(seed, self.level, &self.sizes);
        if !self.only.is_empty() {
            setup.plan = setup.plan.only(&self.only);
        }
        for &kind in &self.without {
            setup.plan = setup.plan.without(kind);
        }
        setup
    }
}

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
    /// Runs in which a property was violated.
    pub violated: u64,
    /// The first of them, with their last steps.
    pub problems: Vec<Problem>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, report: Report) {
        self.runs += 1;
        self.held += u64::from(report.held);
        *self.outcomes.entry(report.ended).or_default() += 1;
        for (&key, count) in &report.strikes {
            *self.strikes.entry(key).or_default() += count;
        }
        if report.ended == Ended::Finished {
            self.suspended.extend(report.suspended_time);
        }
        self.prepared.extend(report.prepare_time);
        if !report.violations.is_empty() {
            self.violated += 1;
            if self.problems.len() < PROBLEMS_MAX {
                let plain = report.problem();
                self.problems.extend(run_traced(report.setup).or(plain));
            }
        }
    }

    /// Adds the runs of another summary.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.held += other.held;
        self.violated += other.violated;
        for (ended, count) in other.outcomes {
            *self.outcomes.entry(ended).or_default() += count;
        }
        for (key, count) in other.strikes {
            *self.strikes.entry(key).or_default() += count;
        }
        self.suspended.extend(other.suspended);
        self.prepared.extend(other.prepared);
        self.problems.extend(other.problems);
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
}

/// Returns the value that `percent` percent of the values do not pass; zero when
/// there are none.
pub(super) fn percentile(values: &[Duration], percent: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

impl fmt::Display for Summary {
    /// A few tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} runs, {} with a hold", self.runs, self.held)?;
        for (ended, count) in &self.outcomes {
            writeln!(f, "  {:<32} {count:>8}", ended.to_string())?;
        }
        for (what, values) in [
            ("from the start to the hold", &self.prepared),
            ("suspended, until the last Finish", &self.suspended),
        ] {
            if !values.is_empty() {
                let [median, high, most] = [50, 99, 100].map(|p| percentile(values, p));
                writeln!(f, "{what}: median {median:?}, 99% {high:?}, most {most:?}")?;
            }
        }
        if !self.strikes.is_empty() {
            writeln!(f, "faults that struck:")?;
        }
        for (kind, count) in self.strikes_by_kind() {
            write!(f, "  {:<20} {count:>8} ", kind.as_str())?;
            for (&(of, phase), count) in &self.strikes {
                if of == kind {
                    write!(f, " {phase} {count}")?;
                }
            }
            writeln!(f)?;
        }
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        write!(f, "{} runs violated a property", self.violated)
    }
}

/// Goes through a range of seeds, one after the other. `progress` is called
/// after each run with the number of runs done; it can end the simulation by
/// returning `false`.
pub fn simulate(options: &Options, mut progress: impl FnMut(u64) -> bool) -> Summary {
    let mut summary = Summary::default();
    for seed in options.seeds.clone() {
        summary.add(run(options.setup(seed)));
        if !progress(summary.runs) {
            break;
        }
    }
    summary
}
