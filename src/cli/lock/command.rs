use super::event::{told, told_of};
use super::held::acquire;
use super::open::open;
use crate::cli::args::{LockCommand, LockRemoveArgs, LockStatusArgs};
use crate::cli::exit::Outcome;
use crate::cli::output::{Event, LockStatus, Reporter, RunResult};
use crate::cli::process::{Signals, name_of};
use crate::error::ErrorKind;
use crate::lock::{BoxFuture, LockConfig, LockError, LockErrorKind, RunLock};

/// Carries out one of the commands on a lock.
pub(crate) async fn lock(
    command: LockCommand,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let once: BoxFuture<'_, Result<RunResult, LockError>> = match &command {
        LockCommand::Acquire(args) => return acquire(args, reporter, signals).await,
        LockCommand::Status(args) => Box::pin(status(args, reporter)),
        LockCommand::Release(args) => Box::pin(release(args, reporter)),
        LockCommand::Break(args) => Box::pin(break_lock(args, reporter)),
    };
    tokio::select! {
        biased;
        done = once => done.unwrap_or_else(|error| refused(&error)),
        signal = signals.next() => {
            let message = format!("{} came before the lock had answered", name_of(signal));
            RunResult::new(Outcome::Cancelled).because(ErrorKind::Cancelled.as_str(), message)
        }
    }
}

async fn status(args: &LockStatusArgs, reporter: &Reporter) -> Result<RunResult, LockError> {
    let lock = open(&args.url, LockConfig::default())?;
    let holders = lock.status().await?;
    let is_free = holders.is_empty();
    let status = if is_free {
        LockStatus::Free
    } else {
        LockStatus::Held
    };
    let told = told(status, lock.location(), &holders);
    reporter.emit(Event::Lock(Box::new(told)));
    let meaning = if is_free {
        "nobody holds the lock"
    } else {
        "the lock is held"
    };
    Ok(RunResult::new(Outcome::Ok).meaning(meaning))
}

async fn break_lock(args: &LockRemoveArgs, reporter: &Reporter) -> Result<RunResult, LockError> {
    let lock = open(&args.url, LockConfig::default())?;
    remove(&*lock, args.id(), LockStatus::Broken, reporter).await
}

/// As `break_lock`, but one's own lock may be gone already.
async fn release(args: &LockRemoveArgs, reporter: &Reporter) -> Result<RunResult, LockError> {
    let lock = open(&args.url, LockConfig::default())?;
    match remove(&*lock, args.id(), LockStatus::Released, reporter).await {
        Err(error) if error.kind() == LockErrorKind::NotThatHolder => {
            let holders = lock.status().await?;
            if !holders.is_empty() {
                return Err(error);
            }
            let told = told(LockStatus::Free, lock.location(), &holders);
            reporter.emit(Event::Lock(Box::new(told)));
            Ok(RunResult::new(Outcome::Ok).meaning("the lock was gone already"))
        }
        other => other,
    }
}

async fn remove(
    lock: &dyn RunLock,
    id: &str,
    status: LockStatus,
    reporter: &Reporter,
) -> Result<RunResult, LockError> {
    let holder = lock.break_lock(id).await?;
    let told = told_of(status, lock.location(), &holder);
    reporter.emit(Event::Lock(Box::new(told)));
    Ok(RunResult::new(Outcome::Ok).meaning("the lock was removed"))
}

/// Returns the result of a command on a lock that failed.
pub(super) fn refused(error: &LockError) -> RunResult {
    let outcome = match error.kind() {
        LockErrorKind::Held | LockErrorKind::Broken | LockErrorKind::NotThatHolder => {
            Outcome::Locked
        }
        LockErrorKind::Lost => Outcome::HoldLost,
        LockErrorKind::Config => Outcome::Usage,
        LockErrorKind::Permission
        | LockErrorKind::Throttled
        | LockErrorKind::Unreachable
        | LockErrorKind::Unsupported
        | LockErrorKind::Full
        | LockErrorKind::Other => Outcome::Error,
    };
    RunResult::new(outcome)
        .because(error.kind().error_kind().as_str(), error.message())
        .meaning(meaning(error.kind()))
}

const fn meaning(kind: LockErrorKind) -> &'static str {
    match kind {
        LockErrorKind::Held => "somebody else holds the lock",
        LockErrorKind::Broken => "what lies in the lock's place cannot be understood",
        LockErrorKind::NotThatHolder => "nothing with that id holds the lock",
        LockErrorKind::Lost => "the lock was lost",
        LockErrorKind::Config => Outcome::Usage.meaning(),
        LockErrorKind::Permission => "the lock refuses our identity",
        LockErrorKind::Throttled | LockErrorKind::Unreachable => "the lock cannot be reached",
        LockErrorKind::Unsupported => "the lock's place lacks what it needs",
        LockErrorKind::Full => "there is no room left for the lock",
        LockErrorKind::Other => Outcome::Error.meaning(),
    }
}
