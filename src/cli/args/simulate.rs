use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use clap::Args;

use super::hold::ProofArg;
use super::seeds::{parse_regions, parse_seeds, parse_stores};
use crate::sim::fault::{FaultKind, FaultLevel};
use crate::sim::world::{FaultSpec, Options, Sizes};

/// What to simulate.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimulateArgs {
    /// The seeds, one run each: 7, or 1..100 (both ends included, 1..=100 is the
    /// same), or 1+100 (a hundred from 1 on)
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, default_value = "1..200")]
    seeds: RangeInclusive<u64>,
    /// How many runs at once; as many as there are cores when left out
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Tell the run of one seed as a story
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "threads"])]
    pub(crate) trace: Option<u64>,
    /// List all faults with what each does, and end
    #[arg(long)]
    pub(crate) list_faults: bool,
    /// How much goes wrong
    #[arg(long, value_name = "none|light|heavy", default_value_t = FaultLevel::Heavy, help_heading = "Faults")]
    faults: FaultLevel,
    /// Of the level's faults only these strike, with commas in between
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = parse_kind, help_heading = "Faults")]
    only: Vec<FaultKind>,
    /// Of the level's faults these do not strike
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = parse_kind, help_heading = "Faults")]
    without: Vec<FaultKind>,
    /// A fault that strikes in every run, N times, whatever the level; if wanted
    /// in one phase only: half_open=2@hold
    #[arg(long, value_name = "FAULT[=N][@PHASE]", value_delimiter = ',', value_parser = parse_fault, help_heading = "Faults")]
    fault: Vec<FaultSpec>,
    /// How many stores, a number or a range from which each seed draws
    #[arg(long, value_name = "A..B", value_parser = parse_stores, default_value = "2..8", help_heading = "Cluster")]
    stores: RangeInclusive<u32>,
    /// How many regions, a number or a range from which each seed draws
    #[arg(long, value_name = "A..B", value_parser = parse_regions, default_value = "1..200", help_heading = "Cluster")]
    regions: RangeInclusive<u32>,
    /// What a hold rests on; each seed draws it when left out (`claims` in a few
    /// runs, without the faults that are known to deceive it)
    #[arg(long, value_enum, help_heading = "Cluster")]
    proof: Option<ProofArg>,
}

impl SimulateArgs {
    /// Returns what to simulate.
    pub(crate) fn options(&self) -> Options {
        Options {
            seeds: self.seeds.clone(),
            level: self.faults,
            sizes: Sizes {
                stores: self.stores.clone(),
                regions: self.regions.clone(),
            },
            only: self.only.clone(),
            without: self.without.clone(),
            faults: self.fault.clone(),
            proof: self.proof.map(Into::into),
        }
    }
}

fn parse_kind(name: &str) -> Result<FaultKind, String> {
    name.trim().parse().map_err(with_names)
}

fn parse_fault(text: &str) -> Result<FaultSpec, String> {
    text.trim().parse().map_err(with_names)
}

/// Adds what the faults are called.
fn with_names(error: String) -> String {
    let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.as_str()).collect();
    format!("{error}; the faults are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_gets_all_names() {
        for error in [
            parse_kind("splt").expect_err("no such"),
            parse_fault("splt=3").expect_err("no such"),
        ] {
            assert!(error.contains("splt"), "{error}");
            for kind in FaultKind::ALL {
                assert!(error.contains(kind.as_str()), "no {kind} in {error}");
            }
        }
    }
}
