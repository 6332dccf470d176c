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
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo told this program of its package is not for other packages: some
    // are built anew when they see it.
    let told = env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in told {
        cargo.env_remove(name);
    }
    let done = cargo
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
