use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as ClapErrorKind;
use tokio::runtime::{Builder, Runtime};

use super::args::{Cli, Command, Format};
use super::exit::Outcome;
use super::output::{Reporter, RunResult};
use super::process::Signals;
use super::{check, demo, lock, run, serve, simulate};

/// Runs the program with the arguments, environment and standard streams of
/// this process, and returns its exit code.
///
/// Takes over SIGINT, SIGTERM and SIGHUP, and the `tracing` subscriber unless
/// one is set already.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage(&error)),
    };
    ExitCode::from(start(cli).code())
}

fn start(cli: Cli) -> Outcome {
    let reporter = match Reporter::start(cli.output, cli.show_keys) {
        Ok(reporter) => reporter,
        Err(error) => {
            eprintln!("error: {}", no_start("thread", &error));
            return Outcome::Error;
        }
    };
    // Whatever happens, the output has its last line and the exit code its meaning.
    let Ok(built) = catch_unwind(runtime) else {
        return reporter.end(panicked());
    };
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            let message = no_start("runtime", &error);
            return reporter.end(RunResult::new(Outcome::Error).because("internal", message));
        }
    };
    let work = || runtime.block_on(dispatch(cli.command, &reporter));
    let result = catch_unwind(AssertUnwindSafe(work));
    let outcome = reporter.end(result.unwrap_or_else(|_| panicked()));
    runtime.shutdown_background();
    outcome
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("cli")
        .enable_all()
        .build()
}

fn panicked() -> RunResult {
    let message = "a panic, of which the lines before tell; please report it";
    RunResult::new(Outcome::Error).because("internal", message)
}

fn no_start(what: &str, error: &std::io::Error) -> String {
    format!("the system gives no {what}: {error}")
}

async fn dispatch(command: Command, reporter: &Reporter) -> RunResult {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            let message = format!("signals cannot be taken over: {error}");
            return RunResult::new(Outcome::Error).because("internal", message);
        }
    };
    match command {
        Command::Run(args) => run::run(args, reporter, &mut signals).await,
        Command::Check(args) => check::check(args, reporter, &mut signals).await,
        Command::Demo(args) => demo::demo(args, reporter, &mut signals).await,
        Command::Serve(args) => serve::serve(args, reporter, &mut signals).await,
        Command::Simulate(args) => simulate::simulate(args, reporter, &mut signals).await,
        Command::Lock(args) => lock::lock(args.command, reporter, &mut signals).await,
    }
}

/// Says what is wrong with the command line, or shows the help that was asked
/// for, and returns the exit code.
fn usage(error: &clap::Error) -> u8 {
    // Where nobody takes the text there is nobody to tell.
    let _ = error.print();
    match error.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => Outcome::Ok.code(),
        _ => {
            if wants_json(std::env::args_os())
                && let Ok(reporter) = Reporter::start(Format::Json, false)
            {
                let message = first_paragraph(&error.to_string());
                reporter.end_quietly(RunResult::new(Outcome::Usage).because("config", message));
            }
            Outcome::Usage.code()
        }
    }
}

/// Returns what clap says, on one line and without its hints for people.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let joined = lines.join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

/// Returns whether a command line that cannot be read asks for JSON lines.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.take_while(|arg| arg != "--").collect();
    args.iter().any(|arg| arg == "--output=json")
        || args
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a == "--output" && b == "json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_seen_before_the_command_only() {
        let wants = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(wants("x run --output json --lease"));
        assert!(wants("x --output=json"));
        assert!(!wants("x run --output text"));
        assert!(!wants("x run -- tool --output json"));
    }
}
