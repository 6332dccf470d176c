//! The command line: what can be asked for, and its help.

mod cluster;
mod endpoint;
mod help;
mod hold;
mod pd;
mod seeds;
mod time;
mod top;

pub(crate) use cluster::ClusterArgs;
pub(crate) use hold::HoldArgs;
pub(crate) use pd::PdArgs;
pub(crate) use time::show_time;
pub(crate) use top::{CheckArgs, Cli, Command, DemoArgs, Format, RunArgs, ServeArgs, SimulateArgs};
