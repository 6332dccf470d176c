use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::FailureKind;

/// How long the first reads in a message may stay unanswered, all of them, until
/// later ones go out alone: what lies between may swallow a call that it does
/// not know.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many messages may fail in a row, whatever the reason, without an answer to
/// any, until the reads go out alone: where the connection is broken that does no
/// harm, and elsewhere it may help.
const FAILURES: u32 = 3;
/// How long after a message that came to nothing the next one is tried: the reason
/// may be gone, or was one that says nothing of messages. Doubled each time.
const REST: Duration = Duration::from_secs(10);
/// How often that is doubled at the most.
const DOUBLINGS: u32 = 5;

/// How a store wants to be read from, as far as it has shown.
#[derive(Debug, Default)]
pub(in crate::tikv) struct Manner {
    /// Whether it refused `KvBatchGet` for its API version, so that
    /// `RawBatchGet` is asked first.
    raw: AtomicBool,
    batches: Mutex<Batches>,
    /// Messages that failed since the last answer.
    failures: AtomicU32,
}

/// What is known of `BatchCommands`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Batches {
    #[default]
    Untried,
    /// Asked, and no answer so far.
    Tried(Trial),
    Served,
    /// It does not serve them, or not to us.
    Refused(Trial),
}

/// A message of reads that came to nothing, or may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Trial {
    when: Instant,
    /// How many came to nothing before it.
    before: u32,
}

impl Trial {
    fn first() -> Self {
        Self {
            when: Instant::now(),
            before: 0,
        }
    }

    fn next(self) -> Self {
        Self {
            when: Instant::now(),
            before: self.before.saturating_add(1),
        }
    }

    /// Returns whether it is the first one and may be answered yet.
    fn is_fresh(self) -> bool {
        self.before == 0 && self.when.elapsed() < PATIENCE
    }

    fn is_long_ago(self) -> bool {
        self.when.elapsed() >= REST * 2_u32.pow(self.before.min(DOUBLINGS))
    }
}

impl Batches {
    fn refuse(&mut self) {
        *self = Self::Refused(match *self {
            Self::Untried | Self::Served => Trial::first(),
            Self::Tried(trial) | Self::Refused(trial) => Trial {
                when: Instant::now(),
                ..trial
            },
        });
    }
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
            Batches::Served => return true,
            Batches::Untried => *batches = Batches::Tried(Trial::first()),
            Batches::Tried(trial) if trial.is_fresh() => {}
            Batches::Tried(trial) | Batches::Refused(trial) if trial.is_long_ago() => {
                *batches = Batches::Tried(trial.next());
            }
            Batches::Tried(_) | Batches::Refused(_) => return false,
        }
        true
    }

    pub(super) fn note_served(&self) {
        self.failures.store(0, Ordering::Relaxed);
        *self.batches() = Batches::Served;
    }

    pub(super) fn note_refused(&self) {
        self.batches().refuse();
    }

    /// Takes in that a message of reads failed before anything came back.
    /// Returns whether the same reads may do better alone.
    pub(super) fn note_failed(&self, kind: FailureKind) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        let mut batches = self.batches();
        match kind {
            FailureKind::Unsupported => batches.refuse(),
            _ if failures >= FAILURES => batches.refuse(),
            // Says nothing of the call.
            FailureKind::Unavailable
            | FailureKind::Transport
            | FailureKind::Timeout
            | FailureKind::Cancelled
            | FailureKind::Tls
            | FailureKind::Unauthenticated
            | FailureKind::WrongCluster => {
                if matches!(*batches, Batches::Tried(trial) if trial.before == 0) {
                    *batches = Batches::Untried;
                }
            }
            // Once may be chance.
            _ if *batches == Batches::Served => *batches = Batches::Untried,
            _ => batches.refuse(),
        }
        matches!(*batches, Batches::Refused(_))
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
        for _ in 1..FAILURES {
            assert!(manner.begin_batch());
            assert!(!manner.note_failed(FailureKind::Transport));
        }
        assert!(manner.begin_batch());
        manner.note_served();
        assert!(!manner.note_failed(FailureKind::Transport));
        assert!(manner.begin_batch());
    }

    #[test]
    fn what_fails_again_and_again_is_tried_in_the_other_way() {
        for kind in [FailureKind::Unavailable, FailureKind::Cancelled] {
            let manner = Manner::default();
            for _ in 1..FAILURES {
                assert!(manner.begin_batch());
                assert!(!manner.note_failed(kind));
            }
            assert!(manner.begin_batch());
            assert!(manner.note_failed(kind), "{kind:?}");
            assert!(!manner.begin_batch());
        }
    }

    #[test]
    fn any_other_failure_counts_unless_there_was_an_answer_since_the_last() {
        let manner = Manner::default();
        for _ in 0..3 {
            manner.note_served();
            assert!(!manner.note_failed(FailureKind::Other));
            assert!(manner.begin_batch());
        }
        assert!(manner.note_failed(FailureKind::Other));
        assert!(!manner.begin_batch());
        // It may have been replaced by an older one.
        manner.note_served();
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

    /// Whatever it was that came to nothing.
    #[tokio::test(start_paused = true)]
    async fn messages_are_tried_again_now_and_then() {
        let come_to_nothing: [fn(&Manner); 3] = [
            |_| {},
            |manner| {
                manner.note_failed(FailureKind::Unsupported);
            },
            Manner::note_refused,
        ];
        for come_to_nothing in come_to_nothing {
            let manner = Manner::default();
            assert!(manner.begin_batch());
            come_to_nothing(&manner);
            tokio::time::advance(PATIENCE).await;
            let start = Instant::now();
            let mut tried = Vec::new();
            while start.elapsed() < Duration::from_secs(3600) {
                if manner.begin_batch() {
                    tried.push(start.elapsed().as_secs());
                    come_to_nothing(&manner);
                    assert!(!manner.begin_batch(), "one at a time");
                }
                tokio::time::advance(PATIENCE).await;
            }
            assert!((3..20).contains(&tried.len()), "{tried:?}");
            let later = tried.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(later.is_sorted(), "{tried:?}");
            manner.note_served();
            assert!(manner.begin_batch() && manner.begin_batch());
        }
    }
}
