use crate::error::Failure;
use crate::region::{Claim, ReadAnswer, ScannedRegion, Store, WaitAnswer};

use super::RequestId;

/// What happened: the input of [`Machine::handle_event`](super::Machine::handle_event).
///
/// Any event is accepted in any phase. Where it answers an effect it carries
/// that effect's number; one with an old number is late, counted and ignored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Event {
    /// PD listed its stores; answers `ListStores`.
    StoresListed {
        /// The number of the effect.
        request: RequestId,
        /// All stores, also those that take no part.
        stores: Vec<Store>,
    },
    /// A stream's connection stands and its headers are sent; answers
    /// `OpenStream`, whose number is the stream's from then on.
    StreamOpened {
        /// The stream.
        stream: RequestId,
    },
    /// A stream ended, or could not be opened. The last event of a stream.
    StreamEnded {
        /// The stream.
        stream: RequestId,
        /// How.
        reason: Failure,
    },
    /// A store answered an `UpdateLease`, or a `Finish`. Answers come in the
    /// order of the requests, so whoever runs the machine pairs them in order.
    LeaseUpdated {
        /// The number of the `UpdateLease` or `Finish`.
        request: RequestId,
        /// Whether the lease had been in force until then.
        last_lease_is_valid: bool,
    },
    /// A store listed some of the regions it believes to lead; answers
    /// `ListClaims`.
    RegionsClaimed {
        /// The number of the effect.
        request: RequestId,
        /// What arrived.
        claims: Vec<Claim>,
        /// Whether the listing is complete.
        done: bool,
    },
    /// Waits were answered on a stream.
    WaitApplyDone {
        /// The stream on which the answers came.
        stream: RequestId,
        /// The answers.
        answers: Vec<WaitAnswer>,
    },
    /// Leader reads were answered; answers `LeaderRead`.
    LeaderReadDone {
        /// The number of the effect.
        request: RequestId,
        /// The answers; a batch may be answered in parts.
        answers: Vec<ReadAnswer>,
    },
    /// PD described a page of regions; answers `ScanRegions`.
    RegionsScanned {
        /// The number of the effect.
        request: RequestId,
        /// The regions in key order.
        regions: Vec<ScannedRegion>,
    },
    /// A call failed: `ListStores`, `ListClaims`, `LeaderRead` or
    /// `ScanRegions`. What it had not answered yet stays unanswered.
    RequestFailed {
        /// The number of the effect.
        request: RequestId,
        /// How.
        failure: Failure,
    },
    /// The owner of the hold has its snapshots: end it and give the verdict.
    FinishRequested,
    /// The owner wants out, in whatever phase.
    CancelRequested,
    /// The lock that guards the run was lost.
    LockLost,
}

impl Event {
    /// Returns the name of the variant, for counters and traces.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StoresListed { .. } => "StoresListed",
            Self::StreamOpened { .. } => "StreamOpened",
            Self::StreamEnded { .. } => "StreamEnded",
            Self::LeaseUpdated { .. } => "LeaseUpdated",
            Self::RegionsClaimed { .. } => "RegionsClaimed",
            Self::WaitApplyDone { .. } => "WaitApplyDone",
            Self::LeaderReadDone { .. } => "LeaderReadDone",
            Self::RegionsScanned { .. } => "RegionsScanned",
            Self::RequestFailed { .. } => "RequestFailed",
            Self::FinishRequested => "FinishRequested",
            Self::CancelRequested => "CancelRequested",
            Self::LockLost => "LockLost",
        }
    }
}
