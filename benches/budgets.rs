//! A short form of all benchmarks, each held against its budget:
//! `cargo bench --bench budgets`. Prints one line each,
//! `BUDGET <name> <measured> <budget> ok|over`, and exits 1 if any is over.
//! Arguments that are part of a name choose among them.

mod budget;
mod support;

use std::process::ExitCode;

use budget::Budget;

/// A family of budgets: what its names begin with, and how to measure it.
type Family = (&'static str, fn() -> Vec<Budget>);

const FAMILIES: [Family; 1] = [("set", budget::set::measure)];

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
