//! One module per row of the table of budgets.

pub mod set;

use std::fmt;

/// A figure and the most that it may be.
pub struct Budget {
    pub name: String,
    pub measured: f64,
    pub most: f64,
}

impl Budget {
    pub fn is_over(&self) -> bool {
        // Not `>`, so that a figure that is no number is over as well.
        !(self.measured <= self.most)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_over() { "over" } else { "ok" };
        write!(
            f,
            "BUDGET {} {:.3} {:.3} {verdict}",
            self.name, self.measured, self.most
        )
    }
}
