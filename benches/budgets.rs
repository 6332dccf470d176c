//! A short form of all benchmarks, each held against its budget:
//! `cargo bench --bench budgets`. Prints one line each,
//! `BUDGET <name> <measured> <budget> ok|over`, and exits 1 if any is over.
//! Arguments that are part of a name choose among the families; `BUDGETS_FULL=1`
//! adds the largest sizes (some gigabytes of memory, some minutes), and with
//! `BUDGETS_EXACT=1` only figures that are the same on any machine, however busy
//! it is, make it exit 1.
//!
//! The families that need the simulated cluster are built with feature `sim`.
//! Where that is off, as by default, cargo is asked for the rest; without the
//! default features only the pure part is measured.

mod budget;
mod support;

use std::process::ExitCode;

use budget::Budget;
use peak_alloc::PeakAlloc;

/// Counts what is allocated.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A family of budgets: its name, and how to measure it.
type Family = (&'static str, fn() -> Vec<Budget>);

const FAMILIES: &[Family] = &[
    ("set", budget::set::measure),
    ("machine", budget::machine::measure),
    #[cfg(feature = "sim")]
    ("standstill", budget::standstill::measure),
    #[cfg(all(feature = "driver", feature = "tikv", feature = "sim"))]
    ("client", budget::client::measure),
];

fn main() -> ExitCode {
    #[cfg(feature = "sim")]
    if let Some(code) = support::server::serve_if_asked() {
        return code;
    }
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let is_wanted = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()))
    };
    let mut fails = false;
    for (name, measure) in FAMILIES {
        if is_wanted(name) {
            for budget in measure() {
                fails |= budget.fails();
                println!("{budget}");
            }
        }
    }
    #[cfg(all(feature = "driver", feature = "tikv", not(feature = "sim")))]
    {
        let rest = ["standstill", "client"].into_iter();
        fails |= budget::rest::fail(&rest.filter(|name| is_wanted(name)).collect::<Vec<_>>());
    }
    ExitCode::from(u8::from(fails))
}
