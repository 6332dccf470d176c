//! The program `snapshot-prepare`; all of it is in the library's module `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    snapshot_prepare::cli::main()
}
