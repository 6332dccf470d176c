//! The command line: what can be asked for, and its help.

mod cluster;
mod endpoint;
mod help;
mod hold;
mod lock;
mod pd;
mod seeds;
mod simulate;
mod time;
mod tls;
mod top;

pub(crate) use cluster::ClusterArgs;
pub(crate) use hold::HoldArgs;
pub(crate) use lock::{LockAcquireArgs, LockCommand, LockRemoveArgs, LockStatusArgs, RunLockArgs};
pub(crate) use pd::PdArgs;
pub(crate) use simulate::SimulateArgs;
pub(crate) use time::show_time;
pub(crate) use tls::ServerTlsArgs;
pub(crate) use top::{CheckArgs, Cli, Command, DemoArgs, Format, RunArgs, ServeArgs};

/// What users type, for fuzzing.
#[cfg(feature = "arbitrary")]
pub(crate) mod parse {
    pub(crate) use super::endpoint::parse_endpoint as endpoint;
    pub(crate) use super::seeds::parse_seeds as seeds;
    pub(crate) use super::time::parse_time as time;
}
