use crate::error::Error;
use crate::progress::{FinishReport, PhaseName, PrepareReport};
use crate::region::StoreId;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Held until the owner asked for the end, and every store confirmed that
    /// its lease was in force: the snapshots taken in between fit together.
    Finished,
    /// Held, but not to the end, or not provably so: discard the snapshots.
    HoldLost(Error),
    /// Cancelled by the owner, before or during the hold.
    Cancelled,
    /// The hold never began.
    Failed(Error),
}

impl Outcome {
    /// Returns the error, if it is one.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::HoldLost(error) | Self::Failed(error) => Some(error),
            Self::Finished | Self::Cancelled => None,
        }
    }
}

/// Something worth telling while it happens; never needed for correctness.
/// Output of [`Machine::poll_notice`](super::Machine::poll_notice), which keeps
/// the newest thousand or so when nobody asks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A phase began.
    PhaseEntered {
        /// Which one.
        phase: PhaseName,
        /// The attempt, counted from 1.
        attempt: u32,
    },
    /// A store was already leased by somebody else.
    ForeignLease {
        /// The store.
        store_id: StoreId,
    },
    /// The hold began.
    Held(Box<PrepareReport>),
    /// The hold is lost; clean-up follows.
    HoldLost(Error),
    /// An attempt ended in doubt and another one follows.
    AttemptFailed {
        /// The attempt that ended.
        attempt: u32,
        /// Why.
        cause: Error,
    },
    /// Nothing has moved for a while.
    StillWaiting {
        /// What is being waited for: counters and a bounded sample, no keys.
        summary: String,
    },
    /// A renewal was handed out well after it was due, when less than the margin
    /// was left.
    LateRenewal {
        /// The store.
        store_id: StoreId,
    },
    /// Half of the longest hold has passed.
    HoldHalfway,
    /// All is over.
    Closed(Box<FinishReport>),
}
