use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{Line, Setup, Standstill, Story};
use crate::error::ErrorKind;
use crate::progress::PhaseName;
use crate::sim::fault::FaultKind;
use crate::sim::oracle::Violation;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// A hold that was good to the end.
    Finished,
    /// A hold that was lost, and why.
    HoldLost(ErrorKind),
    /// Cancelled as the setup has it.
    Cancelled,
    /// No hold, and why.
    Failed(ErrorKind),
    /// It did not end.
    Stuck,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::HoldLost(kind) => write!(f, "hold_lost/{kind}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed(kind) => write!(f, "failed/{kind}"),
            Self::Stuck => f.write_str("stuck"),
        }
    }
}

/// What is to be told of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it was made of.
    pub setup: Setup,
    /// How it ended.
    pub ended: Ended,
    /// Whether there was a hold.
    pub held: bool,
    /// Attempts.
    pub attempts: u32,
    /// From its start to the hold.
    pub prepare_time: Option<Duration>,
    /// From the first lease of the last attempt to its last Finish answered.
    pub suspended_time: Option<Duration>,
    /// How long it took in virtual time.
    pub lasted: Duration,
    /// Requests that reached the model.
    pub requests: u64,
    /// How often each fault struck, by phase.
    pub strikes: BTreeMap<(FaultKind, PhaseName), u64>,
    /// How long it kept the stores suspended, against the least possible; only
    /// of a run that finished well in its first attempt.
    pub standstill: Option<Standstill>,
    /// Whether some key range ever had to be asked for again.
    pub retried: bool,
    /// Stands for all that happened: two runs with the same number went alike.
    pub hash: u64,
    /// What must not have happened.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Returns the command that does the same again, unless the setup was
    /// changed by hand.
    pub fn replay(&self) -> &str {
        &self.setup.replay
    }
}

/// A run in which a property was violated, for people.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The seed.
    pub seed: u64,
    /// All derived parameters.
    pub setup: String,
    /// The command that does the same again.
    pub replay: String,
    /// What is wrong.
    pub violations: Vec<Violation>,
    /// The last steps of the run.
    pub steps: Vec<String>,
}

/// The most steps that a problem tells.
const STEPS_MAX: usize = 60;

impl Story {
    /// Returns the run as a problem, with its last steps, if something is wrong
    /// with it.
    pub fn problem(&self) -> Option<Problem> {
        let report = &self.report;
        let first = self.lines.len().saturating_sub(STEPS_MAX);
        (!report.violations.is_empty()).then(|| Problem {
            seed: report.setup.seed,
            setup: report.setup.to_string(),
            replay: report.setup.replay.clone(),
            violations: report.violations.clone(),
            steps: self.lines[first..].iter().map(Line::to_string).collect(),
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.setup)?;
        for violation in &self.violations {
            writeln!(f, "  VIOLATED: {violation}")?;
        }
        writeln!(f, "  the last steps:")?;
        for step in &self.steps {
            writeln!(f, "    {}", step.trim_start_matches('\n'))?;
        }
        write!(f, "  replay: {}", self.replay)
    }
}
