//! Runs in virtual time: many seeds with a summary, or one as a story.

mod found;
mod many;
mod memory;
mod story;

use super::args::SimulateArgs;
use super::exit::Outcome;
use super::output::{Event, Reporter, RunResult};
use super::process::Signals;
use crate::sim::fault::FaultKind;

/// Tries many seeds, tells the run of one, or lists the faults.
pub(super) async fn simulate(
    args: SimulateArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    if args.list_faults {
        return list_faults(reporter);
    }
    match args.trace {
        Some(seed) => story::tell_one(&args, seed, reporter, signals).await,
        None => many::simulate(&args, reporter, signals).await,
    }
}

fn list_faults(reporter: &Reporter) -> RunResult {
    for kind in FaultKind::ALL {
        let (name, about) = (kind.as_str(), kind.about());
        reporter.emit(Event::Fault { name, about });
    }
    RunResult::new(Outcome::Ok).meaning("these are all the faults")
}
