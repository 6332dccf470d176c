//! A run as a story for people: what was sent, answered, what went wrong, how
//! far it was, and how it ended.

mod line;
mod teller;
mod words;

pub use line::{Line, Mark};
pub(super) use teller::Teller;

use std::fmt;

use super::Report;

/// A run, told.
#[derive(Clone, Debug)]
pub struct Story {
    /// What is to be told of it in numbers.
    pub report: Report,
    /// What happened, in order. Similar steps that follow each other closely are
    /// one line.
    pub lines: Vec<Line>,
}

impl Story {
    /// Returns what the run was made of.
    pub fn opening(&self) -> String {
        let setup = &self.report.setup;
        format!("seed {}: {setup}", setup.seed)
    }

    /// Returns how it ended, and what the oracle says to that.
    pub fn judgement(&self) -> String {
        let report = &self.report;
        let mut text = format!(
            "ended: {}, after {:?} and {} attempts",
            report.ended, report.lasted, report.attempts
        );
        if let Some(standstill) = &report.standstill {
            text.push_str(&format!("\nsuspended, without the hold: {standstill}"));
        }
        if report.violations.is_empty() {
            text.push_str("\njudgement: no property was violated");
        }
        for violation in &report.violations {
            text.push_str(&format!("\njudgement: VIOLATED: {violation}"));
        }
        text
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.opening())?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", self.judgement())
    }
}
