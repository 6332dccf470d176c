use std::collections::BTreeMap;

use serde::Serialize;

/// What `simulate` found.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Simulated {
    /// Runs, one per seed.
    pub(crate) seeds: u64,
    /// Runs with a hold.
    pub(crate) held: u64,
    /// How they ended, and how many so.
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// How often each fault struck, by phase.
    pub(crate) faults: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// How long the stores were suspended, against the least possible; null when
    /// no run ended well in its first attempt.
    pub(crate) standstill: Option<Standstill>,
    /// Runs that violated a property.
    pub(crate) violated: u64,
    /// The first of them.
    pub(crate) violations: Vec<Problem>,
    /// Stands for all that happened in all runs.
    pub(crate) hash: String,
    /// How long it all took.
    pub(crate) wall_ms: u64,
    /// The most memory that the process ever had; null where the system does not
    /// tell.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// All of it as tables for people.
    #[serde(skip)]
    pub(crate) text: String,
}

/// Times of the floor.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Standstill {
    /// Runs with a floor.
    pub(crate) runs: u64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) worst: f64,
    pub(crate) worst_seed: u64,
    /// The sums of all runs, by part.
    pub(crate) parts: BTreeMap<&'static str, Part>,
}

#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Part {
    pub(crate) took_ms: f64,
    pub(crate) floor_ms: f64,
}

/// A run that violated a property.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) seed: u64,
    /// All that was drawn from the seed.
    pub(crate) setup: String,
    /// Each violation: the property, and what happened.
    pub(crate) violations: Vec<String>,
    /// The last steps of the run.
    pub(crate) steps: Vec<String>,
    /// The command that does it again.
    pub(crate) replay: String,
}

/// A step of a simulated run, or some similar ones.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// When the first of them happened, in the run's own time.
    pub(crate) run_us: u64,
    /// When the last of them happened.
    pub(crate) until_us: u64,
    /// `sent`, `answered`, `fault`, `phase` or `note`.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// All of it as a line for people.
    #[serde(skip)]
    pub(crate) line: String,
}
