use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::args::SimulateArgs;
use super::exit::Outcome;
use super::output::{Event, Reporter, RunResult, Simulated, Violation};
use super::process::Signals;
use crate::error::ErrorKind;
use crate::sim::world::{Sizes, Summary, run_seed};

/// How often it is told how far the simulation is.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// What the threads share.
#[derive(Debug, Default)]
struct Shared {
    /// How many runs were begun.
    begun: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
}

/// Tries many seeds in virtual time.
pub(super) async fn simulate(
    args: SimulateArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let all = args.seeds.end() - args.seeds.start() + 1;
    let threads = args
        .threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, |threads| u64::try_from(threads.get()).unwrap_or(1))
        .min(all);
    let shared = Arc::new(Shared::default());
    let mut workers = JoinSet::new();
    for _ in 0..threads {
        let (shared, args) = (Arc::clone(&shared), args.clone());
        workers.spawn_blocking(move || work(&args, all, &shared));
    }
    let mut summary = Summary::default();
    let mut failed = None;
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => shared.is_over.store(true, Ordering::Relaxed),
            joined = workers.join_next() => match joined {
                Some(Ok(part)) => summary.merge(part),
                Some(Err(error)) => failed = Some(error.to_string()),
                None => break,
            },
            () = sleep(TELL_EVERY) => {
                let done = shared.done.load(Ordering::Relaxed);
                reporter.emit(Event::Simulating { done, all });
            }
        }
    }
    told(&summary, reporter);
    result_of(&summary, all, failed)
}

/// Takes seed after seed until none is left.
fn work(args: &SimulateArgs, all: u64, shared: &Shared) -> Summary {
    let sizes = Sizes::default();
    let mut summary = Summary::default();
    while !shared.is_over.load(Ordering::Relaxed) {
        let next = shared.begun.fetch_add(1, Ordering::Relaxed);
        if next >= all {
            break;
        }
        summary.add(run_seed(args.seeds.start() + next, args.faults, &sizes));
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    summary
}

fn told(summary: &Summary, reporter: &Reporter) {
    let simulated = Simulated {
        seeds: summary.runs,
        held: summary.held,
        outcomes: summary
            .outcomes
            .iter()
            .map(|(ended, count)| (ended.to_string(), *count))
            .collect(),
        violated: summary.violated,
        violations: summary
            .problems
            .iter()
            .flat_map(|problem| {
                problem.violations.iter().map(|violation| Violation {
                    seed: problem.seed,
                    property: violation.property.to_owned(),
                    message: violation.message.clone(),
                    replay: problem.replay.clone(),
                })
            })
            .collect(),
        text: summary.to_string(),
    };
    reporter.emit(Event::Simulated(Box::new(simulated)));
}

fn result_of(summary: &Summary, all: u64, failed: Option<String>) -> RunResult {
    if summary.violated > 0 {
        let seed = summary.problems.first().map(|problem| problem.seed);
        let message = format!(
            "{} of {} runs violated a property, seed {} first",
            summary.violated,
            summary.runs,
            seed.unwrap_or_default()
        );
        return RunResult::new(Outcome::Error)
            .because(ErrorKind::Oracle.as_str(), message)
            .meaning("a property was violated");
    }
    if let Some(message) = failed {
        return RunResult::new(Outcome::Error).because(ErrorKind::Internal.as_str(), message);
    }
    if summary.runs < all {
        let message = format!("a signal came after {} of {all} runs", summary.runs);
        return RunResult::new(Outcome::Cancelled).because(ErrorKind::Cancelled.as_str(), message);
    }
    RunResult::new(Outcome::Ok).meaning("no property was violated")
}
