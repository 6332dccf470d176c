use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::cli::output::{Event, Reporter};
use crate::machine::Notice;
use crate::progress::{PhaseName, Progress};

/// How often progress is told at the most.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// How long the last notices may take once the run is over.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Tells what the driver tells, as it comes.
#[derive(Debug)]
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    pub(super) fn start(
        reporter: Reporter,
        progress: watch::Receiver<Progress>,
        notices: mpsc::UnboundedReceiver<Notice>,
    ) -> Self {
        Self(tokio::spawn(tell(reporter, progress, notices)))
    }

    /// Waits until everything of a run that is over has been told.
    pub(super) async fn finish(mut self) {
        if timeout(LAST_WORDS, &mut self.0).await.is_err() {
            self.0.abort();
        }
    }
}

async fn tell(
    reporter: Reporter,
    mut progress: watch::Receiver<Progress>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
) {
    let mut next_progress = Instant::now();
    let mut has_progress = true;
    loop {
        let news = async {
            sleep_until(next_progress).await;
            progress.changed().await
        };
        tokio::select! {
            biased;
            notice = notices.recv() => match notice {
                Some(notice) => tell_notice(&reporter, notice),
                None => return,
            },
            news = news, if has_progress => match news {
                Ok(()) => {
                    let latest = *progress.borrow_and_update();
                    if is_preparing(latest.phase) {
                        reporter.emit(latest.into());
                    }
                    next_progress = Instant::now() + PROGRESS_EVERY;
                }
                Err(_) => has_progress = false,
            },
        }
    }
}

fn is_preparing(phase: PhaseName) -> bool {
    matches!(
        phase,
        PhaseName::Connect | PhaseName::Suspend | PhaseName::WaitApply | PhaseName::Verify
    )
}

fn tell_notice(reporter: &Reporter, notice: Notice) {
    match notice {
        Notice::PhaseEntered { phase, attempt } => {
            reporter.emit(Event::Phase {
                phase: phase.as_str(),
                attempt,
            });
        }
        Notice::ForeignLease { store_id } => {
            reporter.emit(Event::ForeignLease { store: store_id.0 });
        }
        Notice::HoldLost(error) => reporter.hold_lost(&error),
        // The driver warns of these three in the logs, in every format.
        Notice::AttemptFailed { attempt, cause } => reporter.note(format!(
            "attempt {attempt} is over, another one follows: {}",
            reporter.message(&cause)
        )),
        Notice::LateRenewal { store_id } => reporter.note(format!(
            "a renewal of store {store_id} left late; is this machine overloaded?"
        )),
        Notice::HoldHalfway => reporter.note(
            "half of --hold-timeout has passed; a hold should be short, since stores hold back \
             splits and log compaction meanwhile",
        ),
        Notice::StillWaiting { summary } => reporter.tell(&format!("still waiting: {summary}")),
        // The hold is told with its timestamp, the end with the result.
        Notice::Held(_) | Notice::Closed(_) => {}
    }
}
