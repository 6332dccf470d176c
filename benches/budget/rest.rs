//! The families that this build lacks: measured by the same program, built with
//! feature `sim`.

use std::env;
use std::process::Command;

/// Lets cargo measure the families; returns whether one is over its budget, or
/// could not be measured.
pub(crate) fn fail(families: &[&str]) -> bool {
    if families.is_empty() {
        return false;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["bench", "--features", "sim", "--bench", "budgets", "--"])
        .args(families)
        .status();
    match done {
        Ok(status) => !status.success(),
        Err(error) => {
            eprintln!("cargo cannot be started: {error}");
            true
        }
    }
}
