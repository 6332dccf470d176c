use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::time::parse_time;
use crate::machine::{Config, ForeignLease, Proof};

/// How a cluster is prepared and held; the same for `run` and `demo`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Prepare and hold")]
pub(crate) struct HoldArgs {
    /// How long each store's lease is asked for: whole seconds, 5s to 1h.
    /// Renewed at a quarter of it; the longest time a store stays suspended
    /// should this program die
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "120s")]
    pub(crate) lease: Duration,
    /// How long before its end a lease is no longer trusted: at least 1s, at
    /// most half the lease
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "2s")]
    pub(crate) margin: Duration,
    /// The time within which the hold has to begin
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5m")]
    pub(crate) prepare_timeout: Duration,
    /// The longest hold; after it the hold counts as lost
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1h")]
    pub(crate) hold_timeout: Duration,
    /// How long a region may leave a wait unanswered before it is looked at
    /// anew
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    pub(crate) ask_timeout: Duration,
    /// The most regions asked of one store at once, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) window: u32,
    /// The most regions read from PD at once, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) page_size: u32,
    /// What to do when a store is already leased by somebody else
    #[arg(long, value_enum, default_value_t = ForeignLeaseArg::Proceed)]
    pub(crate) foreign_lease: ForeignLeaseArg,
    /// What makes a region count as prepared
    #[arg(long, value_enum, default_value_t = ProofArg::Read)]
    pub(crate) proof: ProofArg,
    /// A file that exists exactly while the hold is in force; its content is
    /// the JSON line `held`
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ForeignLeaseArg {
    /// Report it and go on
    Proceed,
    /// Give up, and leave those stores alone
    Refuse,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProofArg {
    /// A linearizable read served by the region's leader afterwards
    Read,
    /// The stores' and PD's word; assumes that no leader is cut off
    Claims,
}

impl From<ProofArg> for Proof {
    fn from(proof: ProofArg) -> Self {
        match proof {
            ProofArg::Read => Self::Read,
            ProofArg::Claims => Self::Claims,
        }
    }
}

impl HoldArgs {
    /// Returns the machine's configuration, not yet validated.
    pub(crate) fn config(&self, seed: u64) -> Config {
        Config {
            lease: self.lease,
            margin: self.margin,
            prepare_timeout: self.prepare_timeout,
            hold_timeout: self.hold_timeout,
            ask_timeout: self.ask_timeout,
            window: self.window,
            page_size: self.page_size,
            foreign_lease: match self.foreign_lease {
                ForeignLeaseArg::Proceed => ForeignLease::Proceed,
                ForeignLeaseArg::Refuse => ForeignLease::Refuse,
            },
            proof: self.proof.into(),
            seed,
            ..Config::default()
        }
    }
}
