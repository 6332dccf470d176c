//! One module per row of the table of budgets.

pub(crate) mod machine;
pub(crate) mod set;

use std::fmt;

/// Returns whether the large sizes are wanted as well.
pub(crate) fn is_full() -> bool {
    std::env::var_os("BUDGETS_FULL").is_some_and(|value| value != "0")
}

/// A figure and the most that it may be.
pub(crate) struct Budget {
    pub(crate) name: String,
    pub(crate) measured: f64,
    pub(crate) most: f64,
}

impl Budget {
    pub(crate) fn is_over(&self) -> bool {
        // A figure that is no number is over as well.
        self.measured.is_nan() || self.measured > self.most
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
