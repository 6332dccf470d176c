use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::found;
use crate::cli::args::SimulateArgs;
use crate::cli::exit::Outcome;
use crate::cli::output::{Event, Reporter, RunResult};
use crate::cli::process::Signals;
use crate::error::ErrorKind;
use crate::sim::world::{Options, Summary, run};

/// How often it is told how far the simulation is.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// How long runs that are under way are waited for after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the threads share.
#[derive(Debug, Default)]
struct Shared {
    /// How many runs were begun.
    begun: AtomicU64,
    is_over: AtomicBool,
    /// What came of the runs that are done.
    summary: Mutex<Summary>,
}

impl Shared {
    fn summary(&self) -> MutexGuard<'_, Summary> {
        // A run is added as a whole or, should that panic, told as a failure.
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries many seeds in virtual time.
pub(super) async fn simulate(
    args: &SimulateArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let began = Instant::now();
    let options = args.options();
    let all = options.seeds.end() - options.seeds.start() + 1;
    let threads = args
        .threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, |threads| u64::try_from(threads.get()).unwrap_or(1))
        .min(all);
    let shared = Arc::new(Shared::default());
    let mut workers = JoinSet::new();
    for _ in 0..threads {
        let (shared, options) = (Arc::clone(&shared), options.clone());
        workers.spawn_blocking(move || work(&options, all, &shared));
    }
    let mut failed = None;
    let mut give_up_at = None;
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => {
                shared.is_over.store(true, Ordering::Relaxed);
                give_up_at.get_or_insert(Instant::now() + PATIENCE);
            }
            joined = workers.join_next() => match joined {
                Some(Ok(())) => {}
                Some(Err(error)) => failed = Some(error.to_string()),
                None => break,
            },
            () = sleep(TELL_EVERY) => {
                let done = shared.summary().runs;
                reporter.emit(Event::Simulating { done, all });
            }
        }
        // A large run may go on for minutes; it ends with the process.
        if give_up_at.is_some_and(|at| at <= Instant::now()) {
            break;
        }
    }
    let wall = began.elapsed();
    let summary = std::mem::take(&mut *shared.summary());
    let text = format!("{summary}\n{}", found::cost(summary.runs, wall));
    let told = found::simulated(&summary, wall, text);
    reporter.emit(Event::Simulated(Box::new(told)));
    result_of(&summary, all, failed)
}

/// Takes seed after seed until none is left.
fn work(options: &Options, all: u64, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let next = shared.begun.fetch_add(1, Ordering::Relaxed);
        if next >= all {
            break;
        }
        let report = run(options.setup(options.seeds.start() + next));
        shared.summary().add(report);
    }
}

fn result_of(summary: &Summary, all: u64, failed: Option<String>) -> RunResult {
    if summary.violated > 0 {
        return found::violated(summary);
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
