//! What a run reports about itself: how far it is, what was prepared, how it
//! ended.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::region::{RegionId, StoreId};
use crate::time::Timestamp;

/// The phase of a run, without the data it owns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum PhaseName {
    /// Listing stores, probing them, opening streams. Nobody is suspended.
    #[default]
    Connect,
    /// Taking the first lease of every store.
    Suspend,
    /// Waiting until every region's leader has applied its log, and proving it.
    WaitApply,
    /// Comparing what was proven with what the stores say now.
    Verify,
    /// The snapshots may be taken.
    Hold,
    /// Lifting the leases.
    Release,
    /// Over.
    Closed,
}

impl PhaseName {
    /// Returns the name in snake case, as the program prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Suspend => "suspend",
            Self::WaitApply => "wait_apply",
            Self::Verify => "verify",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a run is; cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// The phase.
    pub phase: PhaseName,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// Stores that take part, 0 until they are known.
    pub stores: usize,
    /// Stores with an open stream.
    pub stores_open: usize,
    /// Stores whose first lease of this attempt was acknowledged.
    pub stores_leased: usize,
    /// Regions claimed by the stores; `None` until first known.
    pub regions: Option<u64>,
    /// Regions proven in this attempt.
    pub regions_confirmed: u64,
    /// Waits and reads in flight.
    pub in_flight: u64,
    /// Key ranges in backoff or being looked at anew.
    pub retrying: u64,
    /// Answers that came too late or fitted nothing, since the start.
    pub ignored_answers: u64,
}

/// What was prepared, at the moment the hold began.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct PrepareReport {
    /// The stores that are held, in order of id, each with its address.
    pub stores: Vec<(StoreId, String)>,
    /// Regions verified.
    pub regions: u64,
    /// What the hold rests on: `read` or `claims`.
    pub proof: &'static str,
    /// The attempt that reached the hold, counted from 1.
    pub attempt: u32,
    /// Stores that somebody else had leased before.
    pub foreign_leases: Vec<StoreId>,
    /// From the start of the run to the hold.
    pub prepare_time: Duration,
    /// When the first lease of this attempt was handed out.
    pub suspended_at: Timestamp,
    /// When the hold began.
    pub held_at: Timestamp,
    /// Until when the hold can be trusted if no further renewal is answered.
    pub valid_until: Timestamp,
    /// The regions that took longest to prove, slowest first; a bounded sample.
    pub slowest_regions: Vec<(RegionId, StoreId, Duration)>,
    /// The stores that took longest until their last region was proven, slowest
    /// first; a bounded sample.
    pub slowest_stores: Vec<(StoreId, Duration)>,
    /// How long each phase of this attempt took, in order, up to the hold.
    pub phases: Vec<(PhaseName, Duration)>,
    /// What was asked of the cluster from the start of the run to the hold.
    pub work: Work,
}

/// How much was asked of a cluster, over all attempts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Work {
    /// Regions that a store was asked to wait for; one that is asked again counts
    /// again.
    pub waits: u64,
    /// Regions read as proof, likewise.
    pub reads: u64,
    /// Listings of a store's claims.
    pub listings: u64,
    /// Pages of regions asked of PD.
    pub scans: u64,
}

/// What became of one store's lease at the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReleaseState {
    /// Released, and the lease had been in force.
    Released,
    /// Released, but the lease had lapsed before.
    ReleasedAfterLapse,
    /// Not known to be released: it lapses by itself at `until` at the latest.
    Unknown {
        /// The latest end of the lease, on the machine's clock.
        until: Timestamp,
    },
    /// Left alone on purpose: the lease belongs to somebody else as well. Our
    /// part of it lapses by itself at `until` at the latest.
    LeftToOther {
        /// The latest end of the lease as we made it, on the machine's clock.
        until: Timestamp,
    },
}

/// How a run ended, store by store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct FinishReport {
    /// Each store that may have held our lease in the last attempt, by id.
    pub stores: Vec<(StoreId, ReleaseState)>,
    /// From the start of the run to the hold; `None` when it never began.
    pub prepare_time: Option<Duration>,
    /// From the first lease of the last attempt handed out to the last Finish
    /// answered; `None` when no lease was taken.
    pub suspended_time: Option<Duration>,
    /// When the run was over.
    pub closed_at: Timestamp,
    /// What went wrong, if anything did.
    pub error: Option<Error>,
}

impl FinishReport {
    /// Returns the stores known to be suspended no more.
    pub fn released(&self) -> impl Iterator<Item = StoreId> + '_ {
        self.stores.iter().filter_map(|(id, state)| match state {
            ReleaseState::Released | ReleaseState::ReleasedAfterLapse => Some(*id),
            ReleaseState::Unknown { .. } | ReleaseState::LeftToOther { .. } => None,
        })
    }

    /// Returns the stores that may still be suspended by us, also those left to
    /// somebody else on purpose, each with the
    /// longest time for which, counted from [`FinishReport::closed_at`].
    pub fn unreleased(&self) -> impl Iterator<Item = (StoreId, Duration)> + '_ {
        self.stores.iter().filter_map(|(id, state)| match state {
            ReleaseState::Unknown { until } | ReleaseState::LeftToOther { until } => {
                Some((*id, until.saturating_duration_since(self.closed_at)))
            }
            _ => None,
        })
    }
}
