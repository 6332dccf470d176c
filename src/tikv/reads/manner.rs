use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::FailureKind;

/// How long the first reads in a message may stay unanswered, all of them, until
/// later ones go out alone: what lies between may swallow a call that it does
/// not know.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a store wants to be read from, as far as it has shown.
#[derive(Debug, Default)]
pub(in crate::tikv) struct Manner {
    /// Whether it refused `KvBatchGet` for its API version, so that
    /// `RawBatchGet` is asked first.
    raw: AtomicBool,
    batches: Mutex<Batches>,
}

/// What is known of `BatchCommands`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Batches {
    #[default]
    Untried,
    /// Asked then, and no answer so far.
    Tried(Instant),
    Served,
    /// It does not serve them, or not to us.
    Refused,
}

impl Manner {
    pub(super) fn raw(&self) -> bool {
        self.raw.load(Ordering::Relaxed)
    }

    pub(super) fn set_raw(&self, raw: bool) {
        self.raw.store(raw, Ordering::Relaxed);
    }

    /// Returns whether to put many reads into a message now.
    pub(super) fn begin_batch(&self) -> bool {
        let mut batches = self.batches();
        match *batches {
            Batches::Untried => {
                *batches = Batches::Tried(Instant::now());
                true
            }
            Batches::Tried(when) => when.elapsed() < PATIENCE,
            Batches::Served => true,
            Batches::Refused => false,
        }
    }

    pub(super) fn note_served(&self) {
        *self.batches() = Batches::Served;
    }

    pub(super) fn note_refused(&self) {
        *self.batches() = Batches::Refused;
    }

    /// Takes in that a message of reads failed before anything came back.
    /// Returns whether the same reads may do better alone.
    pub(super) fn note_failed(&self, kind: FailureKind) -> bool {
        let mut batches = self.batches();
        match kind {
            FailureKind::Unsupported => *batches = Batches::Refused,
            // Says nothing of the call.
            FailureKind::Unavailable
            | FailureKind::Transport
            | FailureKind::Timeout
            | FailureKind::Tls
            | FailureKind::Unauthenticated
            | FailureKind::WrongCluster => {
                if matches!(*batches, Batches::Tried(_)) {
                    *batches = Batches::Untried;
                }
            }
            _ if *batches != Batches::Served => *batches = Batches::Refused,
            _ => {}
        }
        *batches == Batches::Refused
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        // Nothing in here panics halfway.
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_the_call_is_not_asked_again() {
        let manner = Manner::default();
        assert!(manner.begin_batch());
        assert!(manner.note_failed(FailureKind::Unsupported));
        assert!(!manner.begin_batch());
    }

    #[test]
    fn a_broken_connection_says_nothing() {
        let manner = Manner::default();
        assert!(manner.begin_batch());
        assert!(!manner.note_failed(FailureKind::Transport));
        assert!(manner.begin_batch());
    }

    #[test]
    fn any_other_failure_counts_only_until_the_first_answer() {
        let manner = Manner::default();
        manner.note_served();
        assert!(!manner.note_failed(FailureKind::Other));
        assert!(manner.begin_batch());
        // It may have been replaced by an older one.
        assert!(manner.note_failed(FailureKind::Unsupported));
        let manner = Manner::default();
        assert!(manner.begin_batch());
        assert!(manner.note_failed(FailureKind::Other));
    }

    #[tokio::test(start_paused = true)]
    async fn reads_go_out_alone_while_the_first_message_is_unanswered() {
        let manner = Manner::default();
        assert!(manner.begin_batch());
        assert!(manner.begin_batch());
        tokio::time::advance(PATIENCE).await;
        assert!(!manner.begin_batch());
        manner.note_served();
        assert!(manner.begin_batch());
    }
}
