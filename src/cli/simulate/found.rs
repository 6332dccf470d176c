use std::collections::BTreeMap;
use std::time::Duration;

use super::memory::peak;
use crate::cli::exit::Outcome;
use crate::cli::output::{self, Part, RunResult, Simulated};
use crate::error::ErrorKind;
use crate::sim::world::{self, Summary};

/// Returns what is to be told of some runs that took `wall`.
pub(super) fn simulated(summary: &Summary, wall: Duration, text: String) -> Simulated {
    let mut faults: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (&(kind, phase), &count) in &summary.strikes {
        let by_phase = faults.entry(kind.as_str()).or_default();
        by_phase.insert(phase.as_str(), count);
    }
    Simulated {
        seeds: summary.runs,
        held: summary.held,
        outcomes: summary
            .outcomes
            .iter()
            .map(|(ended, count)| (ended.to_string(), *count))
            .collect(),
        faults,
        standstill: summary.standstill().map(standstill),
        violated: summary.violated,
        violations: summary.problems.iter().map(problem).collect(),
        hash: format!("{:016x}", summary.hash),
        wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        peak_memory_bytes: peak(),
        text,
    }
}

fn standstill(sums: world::StandstillSummary) -> output::Standstill {
    let times = |per_mille: u64| per_mille as f64 / 1e3;
    let millis = |time: Duration| time.as_micros() as f64 / 1e3;
    let parts = world::Standstill::PARTS.iter().zip(&sums.parts);
    output::Standstill {
        runs: sums.runs,
        median: times(sums.median),
        p99: times(sums.high),
        worst: times(sums.worst),
        worst_seed: sums.worst_seed,
        parts: parts
            .map(|(name, share)| {
                let part = Part {
                    took_ms: millis(share.took),
                    floor_ms: millis(share.floor),
                };
                (*name, part)
            })
            .collect(),
    }
}

fn problem(problem: &world::Problem) -> output::Problem {
    output::Problem {
        seed: problem.seed,
        setup: problem.setup.clone(),
        violations: problem.violations.iter().map(ToString::to_string).collect(),
        steps: problem.steps.clone(),
        replay: problem.replay.clone(),
    }
}

/// Returns the line about time and memory.
pub(super) fn cost(runs: u64, wall: Duration) -> String {
    let mut text = format!("{runs} runs took {:.1} s", wall.as_secs_f64());
    if let Some(peak) = peak() {
        let mebibytes = peak as f64 / f64::from(1 << 20);
        text.push_str(&format!(", {mebibytes:.0} MiB of memory at the most"));
    }
    text
}

/// Returns the result of runs some of which violated a property.
pub(super) fn violated(summary: &Summary) -> RunResult {
    let seed = summary.problems.first().map(|problem| problem.seed);
    let message = format!(
        "{} of {} runs violated a property, seed {} first",
        summary.violated,
        summary.runs,
        seed.unwrap_or_default()
    );
    RunResult::new(Outcome::Error)
        .because(ErrorKind::Oracle.as_str(), message)
        .meaning("a property was violated")
}
