//! A short form of all benchmarks, each held against its budget:
//! `cargo bench --bench budgets`. Prints one line each,
//! `BUDGET <name> <measured> <budget> ok|over`, and exits 1 if any is over.
//! Arguments that are part of a name choose among them; `BUDGETS_FULL=1` adds
//! the largest sizes (some gigabytes of memory, some minutes).

mod budget;
mod support;

use std::process::ExitCode;

use budget::Budget;
use peak_alloc::PeakAlloc;

/// Counts what is allocated.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A family of budgets: what its names begin with, and how to measure it.
type Family = (&'static str, fn() -> Vec<Budget>);

const FAMILIES: [Family; 2] = [
    ("set", budget::set::measure),
    ("machine", budget::machine::measure),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let mut is_over = false;
    for (name, measure) in FAMILIES {
        if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            for budget in measure() {
                is_over |= budget.is_over();
                println!("{budget}");
            }
        }
    }
    ExitCode::from(u8::from(is_over))
}
