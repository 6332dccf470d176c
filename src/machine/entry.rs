use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::RequestId;
use super::known::Known;
use crate::range::KeyRange;
use crate::region::{RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

/// A range that failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) range: KeyRange,
    pub(super) setbacks: Setbacks,
    pub(super) state: EntryState,
    /// Stores whose listing may tell more, since they failed it.
    pub(super) suspects: BTreeSet<StoreId>,
    /// What failed there since the last look began: it is not asked again before
    /// the backoff is over.
    pub(super) failed: BTreeSet<Asked>,
    /// Whether something failed since the look began; whether that wants the
    /// backoff of rule R9, and until when it is not to be asked again.
    pub(super) is_stale: bool,
    pub(super) is_slow: bool,
    pub(super) not_before: Timestamp,
    /// What was said last, for reports.
    pub(super) cause: String,
    pub(super) known: Known,
}

/// What a range has suffered in a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Setbacks {
    /// Failures.
    pub(super) tries: u32,
    /// The last pause after one, before jitter.
    pub(super) pause: Duration,
}

impl Setbacks {
    pub(super) fn worst(self, other: Self) -> Self {
        Self {
            tries: self.tries.max(other.tries),
            pause: self.pause.max(other.pause),
        }
    }
}

/// A region as it was asked at a store.
pub(super) type Asked = (StoreId, RegionId, RegionEpoch);

/// What is being done about a failed range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum EntryState {
    /// In backoff.
    Armed { due: Timestamp },
    /// To be looked at as soon as few enough scans are under way. Listings with
    /// the number `mark` or later tell what has become of it.
    Queued { mark: RequestId },
    /// PD is asked who leads it.
    Scanning {
        request: RequestId,
        sent: Timestamp,
        mark: RequestId,
    },
    /// The named stores are asked for their claims.
    Listing {
        mark: RequestId,
        stores: BTreeSet<StoreId>,
        /// PD's word, by region: whom it names as the leader.
        named: BTreeMap<RegionId, StoreId>,
    },
    /// Somebody was asked again; kept so that the backoff grows if that fails.
    Resting,
}

impl Entry {
    /// Returns whether the range waits for something of its own.
    pub(super) fn is_active(&self) -> bool {
        self.state != EntryState::Resting
    }
}

impl Entry {
    /// Returns an entry without a past.
    pub(super) fn new(range: KeyRange, state: EntryState) -> Self {
        Self {
            range,
            setbacks: Setbacks::default(),
            state,
            suspects: BTreeSet::new(),
            failed: BTreeSet::new(),
            is_stale: false,
            is_slow: false,
            not_before: Timestamp::ZERO,
            cause: String::new(),
            known: Known::default(),
        }
    }

    /// Returns an entry for `range` that only remembers its setbacks.
    pub(super) fn at_rest(&self, range: KeyRange) -> Self {
        Self {
            setbacks: self.setbacks,
            cause: self.cause.clone(),
            known: self.known.within(&range),
            ..Self::new(range, EntryState::Resting)
        }
    }

    pub(super) fn touches(&self, next: &Self) -> bool {
        self.setbacks == next.setbacks && self.range.end().as_key() == Some(next.range.start())
    }

    /// Takes in the next entry, which touches this one.
    pub(super) fn join(&mut self, next: Self) {
        if let Some(range) = KeyRange::new(self.range.start().clone(), next.range.end().clone()) {
            self.range = range;
        }
        if let (EntryState::Queued { mark }, EntryState::Queued { mark: later }) =
            (&mut self.state, &next.state)
        {
            *mark = (*mark).max(*later);
        }
        self.suspects.extend(next.suspects);
        self.failed.extend(next.failed);
        self.is_stale |= next.is_stale;
        self.is_slow |= next.is_slow;
        self.not_before = self.not_before.max(next.not_before);
        self.known.join(next.known);
    }
}
