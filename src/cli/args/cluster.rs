use std::path::PathBuf;

use clap::Args;

use crate::sim::fault::{FaultKind, FaultLevel, FaultPlan};
use crate::sim::layout::Layout;

/// A simulated cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Simulated cluster")]
pub(crate) struct ClusterArgs {
    /// How many stores
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) stores: u32,
    /// How many regions
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) regions: u32,
    /// Take stores and regions from what `pd-ctl region` printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stores", "regions"])]
    pub(crate) layout: Option<PathBuf>,
    /// How much goes wrong
    #[arg(long, value_name = "none|light|heavy", default_value_t = FaultLevel::None)]
    pub(crate) faults: FaultLevel,
    /// Decides all that is random, so that a run can be repeated; drawn anew
    /// and shown when left out
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Replicas per region of a generated cluster, TiKV's default.
const REPLICAS: u32 = 3;

impl ClusterArgs {
    /// Returns the stores and regions.
    ///
    /// # Errors
    /// What is wrong with the file of `--layout`, by name.
    pub(crate) fn layout(&self, seed: u64) -> Result<Layout, String> {
        let Some(path) = &self.layout else {
            return Ok(Layout::generate(self.stores, self.regions, REPLICAS, seed));
        };
        let shown = path.display();
        let text = std::fs::read(path).map_err(|error| format!("--layout {shown}: {error}"))?;
        Layout::from_pd_json(&text).map_err(|error| format!("--layout {shown}: {error}"))
    }

    /// Returns what goes wrong.
    pub(crate) fn plan(&self, seed: u64) -> FaultPlan {
        // Nobody here could pause the client, which runs in real time.
        FaultPlan::derive(self.faults, seed).without(FaultKind::ClientPause)
    }
}
