use std::time::Duration;

use rustix::process::Signal;

use super::during::End;
use crate::cli::args::show_time;
use crate::cli::exit::Outcome;
use crate::cli::output::{Reporter, RunResult, Timing, Unreleased, millis};
use crate::cli::process::name_of;
use crate::driver::FinishError;
use crate::error::{Error, ErrorKind};
use crate::progress::{FinishReport, PrepareReport};
use crate::region::StoreId;

/// Returns the result of a run whose hold never began.
pub(crate) fn not_prepared(
    reporter: &Reporter,
    error: &Error,
    report: Option<&FinishReport>,
) -> RunResult {
    let result = RunResult {
        store: error.store_id().map(|id| id.0),
        region: error.region_id().map(|id| id.0),
        ..RunResult::new(outcome_without_hold(error.kind()))
    }
    .because(error.kind().as_str(), reporter.message(error));
    match report {
        Some(report) => with_report(result, report),
        None => result,
    }
}

/// Returns the outcome that an error means before the hold.
fn outcome_without_hold(kind: ErrorKind) -> Outcome {
    match kind {
        ErrorKind::Config => Outcome::Usage,
        ErrorKind::Locked | ErrorKind::LockBroken => Outcome::Locked,
        ErrorKind::Cancelled => Outcome::Cancelled,
        ErrorKind::Oracle | ErrorKind::Internal => Outcome::Error,
        ErrorKind::PrepareTimeout
        | ErrorKind::Unreachable
        | ErrorKind::Unsupported
        | ErrorKind::Tls
        | ErrorKind::Unauthenticated
        | ErrorKind::WrongService
        | ErrorKind::WrongCluster
        | ErrorKind::Superseded
        | ErrorKind::ForeignLease
        | ErrorKind::LeaseLost
        | ErrorKind::StreamLost
        | ErrorKind::HoldTimeout
        | ErrorKind::LockLost
        | ErrorKind::StorageFull
        | ErrorKind::ReleaseUnconfirmed => Outcome::NotPrepared,
    }
}

/// Returns the result of a run that held: a hold that did not last goes before
/// everything else.
pub(super) fn after_hold(
    reporter: &Reporter,
    end: &End,
    finished: Result<FinishReport, FinishError>,
) -> RunResult {
    match finished {
        Err(error) => {
            let (error, report) = error.into_parts();
            reporter.hold_lost(&error);
            with_report(hold_lost(reporter, &error), &report)
        }
        Ok(report) => with_report(by_end(reporter, end), &report),
    }
}

fn hold_lost(reporter: &Reporter, error: &Error) -> RunResult {
    RunResult {
        store: error.store_id().map(|id| id.0),
        region: error.region_id().map(|id| id.0),
        ..RunResult::new(Outcome::HoldLost)
    }
    .because(error.kind().as_str(), reporter.message(error))
}

/// Returns what a hold that lasted comes to.
fn by_end(reporter: &Reporter, end: &End) -> RunResult {
    match end {
        End::Asked => RunResult::new(Outcome::Ok),
        End::Lost(error) => hold_lost(reporter, error),
        End::Early(signal) => cancelled_by(*signal, BEFORE_HOLD),
        End::Interrupted(signal) => cancelled_by(*signal, "before the command was done"),
        End::Exited(status) if status.success() => RunResult::new(Outcome::Ok),
        End::Exited(status) => RunResult::new(Outcome::CommandFailed)
            .because("command_failed", format!("the command failed: {status}")),
        End::NotRun(message) => {
            RunResult::new(Outcome::CommandFailed).because("command_failed", message.clone())
        }
        End::NoReadyFile(message) => {
            RunResult::new(Outcome::Error).because("ready_file", message.clone())
        }
    }
}

/// Returns the result of a run that a signal ended when it had just begun to
/// hold.
pub(super) fn interrupted(signal: Signal, report: &FinishReport) -> RunResult {
    with_report(cancelled_by(signal, BEFORE_HOLD), report)
}

/// Returns the result of a run that a signal ended before it held. Something
/// else can have ended it in the same moment, which then counts.
pub(super) fn cancelled(
    reporter: &Reporter,
    signal: Signal,
    error: &Error,
    report: Option<&FinishReport>,
) -> RunResult {
    match report {
        Some(report) if error.kind() == ErrorKind::Cancelled => interrupted(signal, report),
        _ => not_prepared(reporter, error, report),
    }
}

const BEFORE_HOLD: &str = "before the hold began";

fn cancelled_by(signal: Signal, when: &str) -> RunResult {
    RunResult::new(Outcome::Cancelled).because(
        ErrorKind::Cancelled.as_str(),
        format!("{} came {when}", name_of(signal)),
    )
}

fn with_report(mut result: RunResult, report: &FinishReport) -> RunResult {
    result.prepare_ms = report.prepare_time.map(millis);
    result.suspended_ms = report.suspended_time.map(millis);
    result.released = report.released().map(|id| id.0).collect();
    result.unreleased = report
        .unreleased()
        .map(|(id, left)| unreleased(id, left))
        .collect();
    result
}

/// Returns the result of a run that was left while it released its stores.
pub(super) fn abandoned(
    held: bool,
    stores: impl IntoIterator<Item = StoreId>,
    lease: Duration,
) -> RunResult {
    let outcome = if held {
        Outcome::HoldLost
    } else {
        Outcome::Cancelled
    };
    let kind = if held {
        ErrorKind::ReleaseUnconfirmed
    } else {
        ErrorKind::Cancelled
    };
    RunResult {
        unreleased: stores.into_iter().map(|id| unreleased(id, lease)).collect(),
        ..RunResult::new(outcome)
    }
    .because(
        kind.as_str(),
        format!(
            "a further signal came while the stores were being released; those not released by \
             then stay suspended for up to {}",
            show_time(lease)
        ),
    )
}

/// Adds what people want to know of a hold.
pub(super) fn with_remarks(mut result: RunResult, report: &PrepareReport) -> RunResult {
    result.timing = Some(Timing::of(report));
    let phases: Vec<String> = report
        .phases
        .iter()
        .map(|(phase, time)| format!("{} {}", phase.as_str(), show_time(*time)))
        .collect();
    if !phases.is_empty() {
        result
            .remarks
            .push(format!("until the hold: {}", phases.join(", ")));
    }
    let shown: Vec<String> = report
        .slowest_stores
        .iter()
        .take(3)
        .map(|(id, time)| format!("{id} ({})", show_time(*time)))
        .collect();
    if !shown.is_empty() {
        result
            .remarks
            .push(format!("slowest stores: {}", shown.join(", ")));
    }
    if !report.foreign_leases.is_empty() {
        let ids: Vec<String> = report
            .foreign_leases
            .iter()
            .map(StoreId::to_string)
            .collect();
        result.remarks.push(format!(
            "somebody else had leased before: stores {}",
            ids.join(", ")
        ));
    }
    if report.proof == "claims" {
        result.remarks.push(
            "the hold rests on the assumption that no leader was cut off from its quorum while we \
             still reached it (--proof claims)"
                .to_owned(),
        );
    }
    result
}

fn unreleased(id: StoreId, left: Duration) -> Unreleased {
    Unreleased {
        store: id.0,
        suspended_for_ms: millis(left),
    }
}
