//! One module per row of the table of budgets.

#[cfg(all(feature = "driver", feature = "tikv", feature = "sim"))]
pub(crate) mod client;
pub(crate) mod machine;
#[cfg(all(feature = "driver", feature = "tikv", not(feature = "sim")))]
pub(crate) mod rest;
pub(crate) mod set;
#[cfg(feature = "sim")]
pub(crate) mod standstill;

use std::fmt;

/// Returns whether the large sizes are wanted as well.
pub(crate) fn is_full() -> bool {
    std::env::var_os("BUDGETS_FULL").is_some_and(|value| value != "0")
}

/// Returns whether only the figures that are the same on any machine decide.
fn is_exact_only() -> bool {
    std::env::var_os("BUDGETS_EXACT").is_some_and(|value| value != "0")
}

/// A figure and the most that it may be.
pub(crate) struct Budget {
    name: String,
    measured: f64,
    most: f64,
    /// Whether it is the same on any machine, however busy that is.
    is_exact: bool,
}

impl Budget {
    /// Returns a figure that depends on nothing but the source.
    pub(crate) fn exact(name: impl Into<String>, measured: f64, most: f64) -> Self {
        Self {
            name: name.into(),
            measured,
            most,
            is_exact: true,
        }
    }

    /// Returns a ratio of times, which other work on the machine can disturb.
    pub(crate) fn timed(name: impl Into<String>, measured: f64, most: f64) -> Self {
        Self {
            is_exact: false,
            ..Self::exact(name, measured, most)
        }
    }

    /// Returns whether this figure makes the program fail.
    pub(crate) fn fails(&self) -> bool {
        self.is_over() && (self.is_exact || !is_exact_only())
    }

    fn is_over(&self) -> bool {
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
