use super::look::{Look, look};
use super::problem::Problem;
use crate::cli::args::CheckArgs;
use crate::cli::exit::Outcome;
use crate::cli::hold::{Stopped, connect, not_prepared, security_of};
use crate::cli::output::{Event, Reporter, RunResult};
use crate::cli::process::Signals;
use crate::error::ErrorKind;

const NOT_NOW: &str = "a run could not start now";

/// Looks at a cluster and tells what it sees.
pub(crate) async fn check(
    args: CheckArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    if args.timeout.is_zero() {
        return RunResult::new(Outcome::Usage)
            .because("config", "timeout is 0s; it has to be longer");
    }
    let security = security_of(&args.pd);
    let cluster = match connect(&args.pd.pd, security, args.timeout, signals).await {
        Ok(cluster) => cluster,
        Err(Stopped::Failed(error)) => {
            return not_prepared(reporter, &error, None).meaning(NOT_NOW);
        }
        Err(Stopped::Interrupted) => return interrupted(),
    };
    let looked = tokio::select! {
        biased;
        _ = signals.next() => return interrupted(),
        looked = look(&cluster, &args, reporter.shows_keys()) => looked,
    };
    match looked {
        Ok(mut look) => {
            look.cluster.cluster_id = cluster.cluster_id();
            told(look, reporter)
        }
        Err(problem) => result_of(&[problem]),
    }
}

fn told(look: Look, reporter: &Reporter) -> RunResult {
    let Look {
        stores,
        cluster,
        problems,
    } = look;
    for store in stores {
        reporter.emit(Event::Store(store));
    }
    reporter.emit(Event::Cluster(cluster));
    result_of(&problems)
}

fn result_of(problems: &[Problem]) -> RunResult {
    let Some(first) = problems.first() else {
        return RunResult::new(Outcome::Ok).meaning("a run could start now");
    };
    let message = match problems.len() - 1 {
        0 => first.message.clone(),
        more => format!("{}; and {more} more", first.message),
    };
    RunResult {
        store: first.store,
        ..RunResult::new(Outcome::NotPrepared)
    }
    .because(first.kind, message)
    .meaning(NOT_NOW)
}

fn interrupted() -> RunResult {
    RunResult::new(Outcome::Cancelled).because(
        ErrorKind::Cancelled.as_str(),
        "a signal came before the look was over",
    )
}
