use std::any::Any;

use tokio::task::JoinError;

use super::board::{Board, Line};
use crate::error::{Failure, FailureKind};

/// Returns what a panic says.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

/// Turns a panic of the cluster client into the failure of its call or stream,
/// and leaves a line about it.
pub(super) fn panic_failure(
    what: &'static str,
    panic: &(dyn Any + Send),
    board: &Board,
) -> Failure {
    let message = panic_message(panic);
    let failure = Failure::new(
        FailureKind::Other,
        format!("the cluster client panicked: {message}"),
    );
    board.line(Line::Panicked { what, message });
    failure
}

/// Like [`panic_failure`], for a task that ended though it does not return.
pub(super) fn join_failure(what: &'static str, error: JoinError, board: &Board) -> Failure {
    match error.try_into_panic() {
        Ok(panic) => panic_failure(what, &*panic, board),
        Err(error) => Failure::new(FailureKind::Other, error.to_string()),
    }
}
