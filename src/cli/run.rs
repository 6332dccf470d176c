use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use super::args::{HoldArgs, RunArgs};
use super::exit::Outcome;
use super::hold::{
    HoldPlan, Observer, Stopped, Target, connect, not_prepared, prepare_and_hold, security_of,
};
use super::lock::{RunLocked, lock_of};
use super::output::{Reporter, RunResult};
use super::process::{ReadyFile, Signals};
use super::seed::fresh_seed;
use crate::error::ErrorKind;
use crate::tikv::Security;

/// Prepares and holds a real cluster.
pub(super) async fn run(args: RunArgs, reporter: &Reporter, signals: &mut Signals) -> RunResult {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let wrong = |message| RunResult::new(Outcome::Usage).because("config", message);
    let lock = match lock_of(&args.lock).and_then(|lock| {
        if lock.is_some() {
            check_plan(&args.hold)?;
        }
        Ok(lock)
    }) {
        Ok(lock) => lock,
        Err(message) => return wrong(message),
    };
    // Before the ready file is touched, which may be that of whoever has it.
    let locked = match lock {
        None => None,
        Some(lock) => match RunLocked::take(lock, &args.lock, reporter, signals).await {
            Ok(locked) => Some(locked),
            Err(result) => return *result,
        },
    };
    let result = match plan_of(&args.hold, args.command, None, seed) {
        Ok(mut plan) => {
            plan.lock_lost = locked.as_ref().map(RunLocked::lost);
            let security = security_of(&args.pd);
            run_against(&args.pd.pd, security, plan, Arc::new(()), reporter, signals).await
        }
        Err(message) => wrong(message),
    };
    match locked {
        Some(locked) => locked.release(result).await,
        None => result,
    }
}

/// Checks that the options make a plan, without touching anything.
fn check_plan(hold: &HoldArgs) -> Result<(), String> {
    ReadyFile::check(hold.ready_file.as_deref())?;
    hold.config(0)
        .validate()
        .map_err(|error| error.message().to_owned())
}

/// Makes the options a plan. A ready file that an earlier run has left is
/// removed first of all.
pub(super) fn plan_of(
    hold: &HoldArgs,
    command: Vec<OsString>,
    hold_for: Option<Duration>,
    seed: u64,
) -> Result<HoldPlan, String> {
    let ready = ReadyFile::prepare(hold.ready_file.as_deref())?;
    let config = hold.config(seed);
    config
        .validate()
        .map_err(|error| error.message().to_owned())?;
    Ok(HoldPlan {
        config,
        command,
        hold_for,
        ready,
        lock_lost: None,
    })
}

/// Connects to PD, prepares, holds, releases.
pub(super) async fn run_against(
    endpoints: &[String],
    security: Security,
    mut plan: HoldPlan,
    observer: Arc<dyn Observer>,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let limit = plan.config.prepare_timeout;
    let started = reporter.elapsed();
    let cluster = match connect(endpoints, security, limit, signals).await {
        Ok(cluster) => cluster,
        Err(Stopped::Failed(error)) => return not_prepared(reporter, &error, None),
        Err(Stopped::Interrupted) => {
            return RunResult::new(Outcome::Cancelled).because(
                ErrorKind::Cancelled.as_str(),
                "a signal came before any store was suspended",
            );
        }
    };
    let used = reporter.elapsed().saturating_sub(started);
    // What connecting took counts, in whole seconds, so that messages show the
    // time that was asked for. A run that is late already fails at once.
    let used = Duration::from_secs(used.as_secs());
    plan.config.prepare_timeout = limit.saturating_sub(used).max(Duration::from_millis(1));
    let cluster_id = cluster.cluster_id();
    let pd = cluster.clone();
    let target = Target {
        cluster,
        cluster_id,
        min_ts: async move { pd.min_ts().await },
        observer,
    };
    prepare_and_hold(target, plan, reporter, signals).await
}
