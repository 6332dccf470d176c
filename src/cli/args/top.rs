use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::time::parse_time;
use super::{
    ClusterArgs, HoldArgs, LockCommand, PdArgs, RunLockArgs, ServerTlsArgs, SimulateArgs, help,
};

/// Everything that can be said on the command line.
#[derive(Parser, Debug)]
#[command(
    name = "snapshot-prepare",
    version,
    about = "Holds a TiKV cluster still while volume snapshots of its stores are taken",
    long_about = help::ABOUT,
    after_help = help::top(),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What standard output carries
    #[arg(long, value_enum, global = true, default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Show keys in messages; they are user data and hidden otherwise
    #[arg(long, global = true)]
    pub(crate) show_keys: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Lines for people, with a progress bar on a terminal
    Text,
    /// One JSON object a line and nothing else
    Json,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Prepare a cluster, hold it, run a command, release
    #[command(long_about = help::RUN, after_help = help::run())]
    Run(RunArgs),
    /// Look whether a run could start now; changes nothing
    #[command(long_about = help::CHECK)]
    Check(CheckArgs),
    /// Do a run against a simulated cluster in this process
    #[command(long_about = help::DEMO, after_help = help::demo())]
    Demo(DemoArgs),
    /// Serve a simulated cluster over gRPC
    #[command(long_about = help::SERVE, after_help = help::serve())]
    Serve(ServeArgs),
    /// Try many seeds in virtual time
    #[command(long_about = help::SIMULATE, after_help = help::simulate())]
    Simulate(SimulateArgs),
    /// Look at, take, release or break a lock on its own
    #[command(long_about = help::LOCK)]
    Lock(LockArgs),
}

#[derive(Args, Debug)]
pub(crate) struct LockArgs {
    #[command(subcommand)]
    pub(crate) command: LockCommand,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) pd: PdArgs,
    #[command(flatten)]
    pub(crate) hold: HoldArgs,
    #[command(flatten)]
    pub(crate) lock: RunLockArgs,
    /// Decides the jitter of backoffs; drawn anew when left out
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The command to run during the hold, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) pd: PdArgs,
    /// The most regions read from PD at once, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) page_size: u32,
    /// How long PD or a store may go without an answer
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s")]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) hold: HoldArgs,
    /// How long to hold when there is no command
    #[arg(
        id = "hold_for",
        long = "hold",
        value_name = "TIME",
        value_parser = parse_time,
        default_value = "2s",
        conflicts_with = "command"
    )]
    pub(crate) hold_for: Duration,
    /// The command to run during the hold, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) tls: ServerTlsArgs,
    /// Where PD listens; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    fn parsed(line: &str) -> Result<Cli, String> {
        Cli::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_stands_after_two_dashes() {
        let cli = parsed("snapshot-prepare run --pd a:1,b:2 -- sh -c true").expect("parses");
        let Command::Run(args) = cli.command else {
            panic!("not run")
        };
        assert_eq!(args.command, ["sh", "-c", "true"]);
        assert_eq!(args.pd.pd, ["a:1", "b:2"]);
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let message = parsed("snapshot-prepare run --pd a:1 --ca c --cert d").expect_err("refused");
        assert!(message.contains("--key"), "{message}");
    }

    #[test]
    fn no_endpoint_is_an_error() {
        let message = parsed("snapshot-prepare run").expect_err("refused");
        assert!(message.contains("--pd"), "{message}");
    }
}
