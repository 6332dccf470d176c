use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tracing::{debug, error, info, warn};

use crate::error::{Error, FailureKind};
use crate::machine::Notice;
use crate::progress::Progress;
use crate::region::StoreId;

/// The most lines that wait for a slow logger; the rest is dropped and counted.
const LINES_MAX: usize = 1024;

/// Something to log.
#[derive(Debug)]
pub(super) enum Line {
    /// What the machine tells.
    Notice(Notice),
    /// A prepare stream stands.
    StreamOpened { store_id: StoreId },
    /// A prepare stream ended, or could not be opened.
    StreamEnded {
        store_id: StoreId,
        kind: FailureKind,
        message: String,
    },
    /// A part of the driver, or the cluster client, panicked.
    Panicked { what: &'static str, message: String },
    /// The driver failed.
    Died(Error),
}

/// Where the loop leaves what others want to know: the latest progress and the
/// lines to log.
///
/// Leaving something here never waits. A reporter (a task of its own, or a
/// thread when isolated) takes it from here: a subscriber that sits on a
/// borrowed value or a logger that blocks then holds up the reporter alone.
#[derive(Debug, Default)]
pub(super) struct Board {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    progress: Option<Progress>,
    lines: VecDeque<Line>,
    dropped: u64,
    is_over: bool,
}

impl Board {
    /// Leaves the latest progress; an older one that was not taken is replaced.
    pub(super) fn progress(&self, progress: Progress) {
        self.state().progress = Some(progress);
        self.filled.notify_one();
    }

    /// Leaves a line to log.
    pub(super) fn line(&self, line: Line) {
        {
            let mut state = self.state();
            if state.lines.len() < LINES_MAX {
                state.lines.push_back(line);
            } else {
                state.dropped += 1;
            }
        }
        self.filled.notify_one();
    }

    /// Says that nothing follows; the reporter ends when it has taken all.
    pub(super) fn close(&self) {
        self.state().is_over = true;
        self.filled.notify_one();
    }

    /// Publishes and logs until the board is closed.
    pub(super) async fn report(&self, progress: watch::Sender<Progress>) {
        loop {
            let taken = std::mem::take(&mut *self.state());
            if let Some(latest) = taken.progress {
                progress.send_replace(latest);
            }
            for line in taken.lines {
                log(&line);
            }
            if taken.dropped > 0 {
                warn!(
                    lines = taken.dropped,
                    "log lines were dropped, the logger is too slow"
                );
            }
            if taken.is_over {
                return;
            }
            self.filled.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the board when the loop is gone, however it went.
#[derive(Debug)]
pub(super) struct CloseBoard(pub(super) std::sync::Arc<Board>);

impl Drop for CloseBoard {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn log(line: &Line) {
    match line {
        Line::Notice(notice) => log_notice(notice),
        Line::StreamOpened { store_id } => debug!(%store_id, "prepare stream opened"),
        Line::StreamEnded {
            store_id,
            kind,
            message,
        } => debug!(%store_id, ?kind, message, "prepare stream ended"),
        Line::Panicked { what, message } => error!(message, "{what} panicked"),
        Line::Died(error) => error!(%error, "driver failed"),
    }
}

fn log_notice(notice: &Notice) {
    match notice {
        Notice::PhaseEntered { phase, attempt } => info!(%phase, attempt, "phase entered"),
        Notice::ForeignLease { store_id } => {
            warn!(%store_id, "store was already leased by somebody else");
        }
        Notice::Held(report) => info!(
            attempt = report.attempt,
            stores = report.stores.len(),
            regions = report.regions,
            proof = report.proof,
            "hold began"
        ),
        Notice::HoldLost(error) => warn!(
            kind = %error.kind(),
            store_id = error.store_id().map(|id| id.0),
            region_id = error.region_id().map(|id| id.0),
            %error,
            "hold lost"
        ),
        Notice::AttemptFailed { attempt, cause } => warn!(
            attempt,
            kind = %cause.kind(),
            store_id = cause.store_id().map(|id| id.0),
            region_id = cause.region_id().map(|id| id.0),
            %cause,
            "attempt failed"
        ),
        Notice::StillWaiting { summary } => info!(summary, "still waiting"),
        Notice::LateRenewal { store_id } => warn!(%store_id, "lease was renewed late"),
        Notice::HoldHalfway => warn!("half of the longest hold has passed"),
        Notice::Closed(report) => info!(
            released = report.released().count(),
            unreleased = report.unreleased().count(),
            error = report.error.as_ref().map(tracing::field::display),
            "run closed"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::PhaseName;

    fn progress(stores: usize) -> Progress {
        Progress {
            phase: PhaseName::Suspend,
            stores,
            ..Progress::default()
        }
    }

    #[tokio::test]
    async fn a_subscriber_sees_the_latest_progress_when_all_is_over() {
        let board = Board::default();
        let (sender, receiver) = watch::channel(Progress::default());
        board.progress(progress(1));
        board.progress(progress(2));
        board.close();
        board.report(sender).await;
        assert_eq!(*receiver.borrow(), progress(2));
    }

    #[test]
    fn a_slow_logger_costs_lines_but_no_memory() {
        let board = Board::default();
        for _ in 0..LINES_MAX + 5 {
            board.line(Line::Notice(Notice::HoldHalfway));
        }
        let state = board.state();
        assert_eq!((state.lines.len(), state.dropped), (LINES_MAX, 5));
    }
}
