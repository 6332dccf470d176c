use std::ffi::OsString;
use std::pin::{Pin, pin};

use super::command::refused;
use super::event::told_of_guard;
use super::open::open;
use super::take::{NotTaken, take};
use crate::cli::args::LockAcquireArgs;
use crate::cli::exit::Outcome;
use crate::cli::output::{Event, LockStatus, Reporter, RunResult};
use crate::cli::process::{CommandEnd, Signals, name_of, supervise};
use crate::error::ErrorKind;
use crate::lock::{LockError, LockErrorKind, LockGuard, Release};

/// Takes a lock, holds it while a command runs or until a signal, releases it.
pub(super) async fn acquire(
    args: &LockAcquireArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let lock = match open(&args.url, args.config()) {
        Ok(lock) => lock,
        Err(error) => return refused(&error),
    };
    let guard = match take(&*lock, args.wait, signals).await {
        Ok(guard) => guard,
        Err(NotTaken::Failed(error)) => return refused(&error),
        Err(NotTaken::Interrupted(signal)) => {
            let message = format!("{} came before the lock was taken", name_of(signal));
            return RunResult::new(Outcome::Cancelled)
                .because(ErrorKind::Cancelled.as_str(), message);
        }
    };
    let location = lock.location();
    let told = told_of_guard(LockStatus::Acquired, location.clone(), &guard);
    reporter.emit(Event::Lock(Box::new(told)));
    let result = hold(&guard, &args.command, reporter, signals).await;
    let told = told_of_guard(LockStatus::Released, location, &guard);
    let id = guard.id().to_owned();
    match guard.release().await {
        Ok(Release::Released) => {
            reporter.emit(Event::Lock(Box::new(told)));
            result
        }
        Ok(_) if result.outcome == Outcome::HoldLost => result,
        Ok(not_clean) => lost(&format!("the lock was lost: {not_clean}")),
        Err(error) => {
            let mut result = result;
            result.remarks.push(format!(
                "the lock may be left behind: {error}; see `lock status`, and `lock release` with \
                 id {id}"
            ));
            result
        }
    }
}

async fn hold(
    guard: &LockGuard,
    command: &[OsString],
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let mut gone = pin!(guard.lost());
    if command.is_empty() {
        return wait(gone, reporter, signals).await;
    }
    // Taking it may have been slow.
    if let Err(error) = guard.ensure_held() {
        return lost(error.message());
    }
    let environment = environment_of(guard);
    let end = supervise(
        command,
        environment,
        "the lock",
        reporter,
        signals,
        gone.as_mut(),
        |error: &LockError| tell_lost(reporter, error),
    )
    .await;
    match end {
        CommandEnd::Exited(status) if status.success() => {
            RunResult::new(Outcome::Ok).meaning("the lock was held all the time")
        }
        CommandEnd::Exited(status) => RunResult::new(Outcome::CommandFailed)
            .because("command_failed", format!("the command failed: {status}"))
            .meaning("the command failed; the lock was held all the time"),
        CommandEnd::NotRun(message) => RunResult::new(Outcome::CommandFailed)
            .because("command_failed", message)
            .meaning("the command did not run; the lock was held all the time"),
        CommandEnd::Interrupted(signal) => RunResult::new(Outcome::Cancelled).because(
            ErrorKind::Cancelled.as_str(),
            format!("{} came before the command was done", name_of(signal)),
        ),
        CommandEnd::Lost(error) => lost(error.message()),
    }
}

/// Holds the lock without a command.
async fn wait(
    gone: Pin<&mut impl Future<Output = LockError>>,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    reporter.note("holding the lock; Ctrl-C or SIGTERM releases it".to_owned());
    tokio::select! {
        biased;
        error = gone => {
            tell_lost(reporter, &error);
            lost(error.message())
        }
        signal = signals.next() => {
            reporter.note(format!("{}: the lock is released", name_of(signal)));
            RunResult::new(Outcome::Ok).meaning("the lock was held all the time")
        }
    }
}

fn tell_lost(reporter: &Reporter, error: &LockError) {
    reporter.hold_lost(&crate::error::Error::from(error.clone()));
}

fn lost(message: &str) -> RunResult {
    RunResult::new(Outcome::HoldLost)
        .because(LockErrorKind::Lost.error_kind().as_str(), message)
        .meaning("the lock was lost: what was done under it may have met others")
}

/// Returns what the command finds in its environment.
fn environment_of(guard: &LockGuard) -> Vec<(&'static str, Option<OsString>)> {
    vec![
        ("SNAPSHOT_PREPARE_LOCK_ID", Some(guard.id().into())),
        // Taken out when there is none, lest an outer run's be believed.
        (
            "SNAPSHOT_PREPARE_LOCK_FENCE",
            guard.fence().map(|fence| fence.to_string().into()),
        ),
    ]
}
