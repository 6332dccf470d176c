use std::collections::BTreeMap;

use crate::machine::{Effect, Notice, Outcome};
use crate::progress::PhaseName;

/// What of note happened, and how often: a search that never meets these things
/// shows nothing about them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sometimes {
    counts: BTreeMap<String, u64>,
}

impl Sometimes {
    /// What a good search meets.
    pub const WANTED: [&'static str; 16] = [
        "a difference while verifying",
        "attempt failed",
        "cancelled in the hold",
        "cancelled before the hold",
        "failed: PrepareTimeout",
        "failed: Superseded",
        "finished",
        "foreign lease",
        "hold",
        "hold lost: HoldTimeout",
        "hold lost: LeaseLost",
        "hold lost: LockLost",
        "hold lost: ReleaseUnconfirmed",
        "hold lost: StreamLost",
        "hold lost: Superseded",
        "still waiting",
    ];

    /// Notes one input: what was told, what was asked, and all phases so far.
    pub(super) fn note(&mut self, notices: &[Notice], effects: &[Effect], phases: &[PhaseName]) {
        for notice in notices {
            match notice {
                Notice::PhaseEntered { phase, .. } => self.count(phase),
                Notice::AttemptFailed { .. } => self.count("attempt failed"),
                Notice::ForeignLease { .. } => self.count("foreign lease"),
                Notice::StillWaiting { .. } => self.count("still waiting"),
                Notice::HoldHalfway => self.count("halfway through the hold"),
                Notice::LateRenewal { .. } => self.count("late renewal"),
                _ => {}
            }
        }
        let verifying = phases.last() == Some(&PhaseName::Verify);
        let asked_again = |effect: &Effect| matches!(effect, Effect::WaitApply { .. });
        if verifying && effects.iter().any(asked_again) {
            self.count("a difference while verifying");
        }
    }

    /// Notes how the run ended.
    pub(super) fn note_outcome(&mut self, outcome: &Outcome, phases: &[PhaseName]) {
        let held = phases.contains(&PhaseName::Hold);
        match outcome {
            Outcome::Finished => self.count("finished"),
            Outcome::HoldLost(error) => self.count(format_args!("hold lost: {:?}", error.kind())),
            Outcome::Cancelled if held => self.count("cancelled in the hold"),
            Outcome::Cancelled => self.count("cancelled before the hold"),
            Outcome::Failed(error) => self.count(format_args!("failed: {:?}", error.kind())),
        }
    }

    fn count(&mut self, what: impl ToString) {
        *self.counts.entry(what.to_string()).or_default() += 1;
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }

    /// Returns how often `what` happened.
    pub fn count_of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Returns all that happened, with how often.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts
            .iter()
            .map(|(what, count)| (what.as_str(), *count))
    }
}
