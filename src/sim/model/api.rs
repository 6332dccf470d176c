//! What goes into the model and what comes out of it.

use std::fmt;

use crate::cluster::StreamRequest;
use crate::range::KeyRange;
use crate::region::{
    Claim, Peer, PeerId, Region, RegionEpoch, RegionId, ScannedRegion, Store, StoreId, WaitTarget,
};

/// The number of a call or a stream, chosen by the caller and never used twice.
/// Those from [`CallId::INTERNAL`] on belong to the model itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

impl CallId {
    /// The first number that callers may not use.
    pub const INTERNAL: Self = Self(1 << 63);

    /// Returns whether the call is one of the model's own, such as a rival's.
    pub fn is_internal(self) -> bool {
        self >= Self::INTERNAL
    }
}

/// What a client asks. Every call but a stream ends with its last answer:
/// `Stores`, `Regions`, `MinTs`, `Read`, or `End` (the claims of a store, a
/// stream, and any call that fails).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// All stores (`pdpb.PD/GetAllStores`), also tombstones.
    ListStores,
    /// A page of regions (`pdpb.PD/ScanRegions`).
    ScanRegions {
        /// The keys.
        range: KeyRange,
        /// The most regions to answer with.
        limit: u32,
    },
    /// PD's timestamp (`pdpb.PD/GetMinTS`).
    MinTs,
    /// The regions a store believes to lead (`backup.Backup/CheckPendingAdminOp`).
    ListClaims {
        /// The store.
        store: StoreId,
    },
    /// A read without keys (`tikvpb.Tikv/KvBatchGet` or `RawBatchGet`).
    LeaderRead {
        /// The store that is asked.
        store: StoreId,
        /// What is asked.
        read: ReadRequest,
    },
    /// A prepare stream (`backup.Backup/PrepareSnapshotBackup`).
    OpenStream {
        /// The store.
        store: StoreId,
    },
    /// A request on an open stream.
    StreamSend(StreamRequest),
    /// A message on an open stream that the server cannot decode.
    StreamGarbage,
    /// The client's side of the stream is closed.
    HalfClose,
    /// The client drops the call; nothing of it is answered any more.
    Cancel,
}

/// Which of the two reads without keys is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ReadKind {
    /// `KvBatchGet`: served by storage of API version 1 and 2.
    #[default]
    KvBatchGet,
    /// `RawBatchGet`: served by storage of API version 1, with or without TTL.
    RawBatchGet,
}

/// A read without keys, as its context describes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadRequest {
    /// The region.
    pub region_id: RegionId,
    /// The epoch; only the version is compared. Absent on the wire is 0/0.
    pub epoch: RegionEpoch,
    /// The peer that is meant; 0 when absent.
    pub peer_id: PeerId,
    /// The store that is meant; 0 when absent.
    pub peer_store: StoreId,
    /// The raft term; 0 is not compared.
    pub term: u64,
    /// Whether any replica may serve.
    pub replica_read: bool,
    /// Whether stale data may be served.
    pub stale_read: bool,
    /// Which call.
    pub kind: ReadKind,
    /// `api_version`: 0 is V1, 1 is V1TTL, 2 is V2.
    pub api_version: u32,
}

/// What comes back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// To `ListStores`; ends the call.
    Stores(Vec<Store>),
    /// To `ScanRegions`; ends the call.
    Regions(Vec<ScannedRegion>),
    /// To `MinTs`; ends the call.
    MinTs(u64),
    /// To `ListClaims`: some claims; `End` follows after the last ones.
    Claims(Vec<Claim>),
    /// To `LeaderRead`; ends the call. `Ok` means served.
    Read(Result<(), ModelRegionError>),
    /// To `OpenStream`: the store was dialed and has the request headers. On
    /// the wire there is nothing to see of it.
    Opened,
    /// To a request on a stream.
    Stream(StreamReply),
    /// The call or stream is over.
    End(Status),
}

/// An answer on a prepare stream.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StreamReply {
    /// `UpdateLeaseResult`, the answer to `UpdateLease` and to `Finish`.
    LeaseUpdated {
        /// Whether the lease had been in force until then.
        last_lease_is_valid: bool,
    },
    /// `WaitApplyDone`, the answer for one region of a `WaitApply`.
    WaitApplyDone {
        /// The place of the region among all that were sent on this stream in
        /// `WaitApply` requests, from 0, so that a server can echo the region
        /// byte for byte.
        entry: u64,
        /// The region as it was asked for.
        target: WaitTarget,
        /// Whether it had applied.
        result: Result<(), ModelRegionError>,
    },
}

/// How a call or stream ended: the status of gRPC.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The words.
    pub message: String,
}

impl Status {
    /// Returns a status of `code` that says `message`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the status of a good end.
    pub fn ok() -> Self {
        Self::new(Code::Ok, "")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.code, self.message)
    }
}

/// The status codes of gRPC that occur here, with their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(i32)]
pub enum Code {
    /// The call ended as it should.
    Ok = 0,
    /// Cancelled.
    Cancelled = 1,
    /// No code was sent; the transport broke.
    Unknown = 2,
    /// The request makes no sense.
    InvalidArgument = 3,
    /// The deadline passed.
    DeadlineExceeded = 4,
    /// Some limit was passed.
    ResourceExhausted = 8,
    /// No lease is in force.
    FailedPrecondition = 9,
    /// There is no such call.
    Unimplemented = 12,
    /// The server failed.
    Internal = 13,
    /// The server cannot be reached or is not ready.
    Unavailable = 14,
    /// The server does not know the client.
    Unauthenticated = 16,
}

/// A region's answer that is not success, in the form of `errorpb.Error`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ModelRegionError {
    /// `message`.
    pub message: String,
    /// The sub-message that is set.
    pub detail: RegionErrorDetail,
}

impl ModelRegionError {
    /// Returns an error with `detail` that says `message`.
    pub fn new(detail: RegionErrorDetail, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail,
        }
    }
}

/// The sub-message of an `errorpb.Error`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RegionErrorDetail {
    /// None is set: the text is all there is.
    None,
    /// `not_leader`.
    NotLeader {
        /// The region.
        region_id: RegionId,
        /// The leader the peer knows of.
        leader: Option<Peer>,
    },
    /// `region_not_found`.
    RegionNotFound {
        /// The region.
        region_id: RegionId,
    },
    /// `epoch_not_match`.
    EpochNotMatch {
        /// `current_regions`.
        current: Vec<Region>,
    },
    /// `server_is_busy`.
    ServerIsBusy {
        /// Why.
        reason: String,
        /// The delay the store suggests, 0 for none.
        backoff_ms: u64,
    },
    /// `stale_command`.
    StaleCommand,
    /// `store_not_match`.
    StoreNotMatch {
        /// The store that was asked for.
        requested: StoreId,
        /// The store that answers.
        actual: StoreId,
    },
    /// `mismatch_peer_id`.
    MismatchPeerId {
        /// The peer that was asked for.
        requested: PeerId,
        /// The peer on this store.
        actual: PeerId,
    },
    /// `read_index_not_ready`.
    ReadIndexNotReady {
        /// Why.
        reason: String,
        /// The region.
        region_id: RegionId,
    },
    /// `proposal_in_merging_mode`.
    ProposalInMergingMode {
        /// The region.
        region_id: RegionId,
    },
    /// `data_is_not_ready`.
    DataIsNotReady {
        /// The region.
        region_id: RegionId,
        /// The peer.
        peer_id: PeerId,
    },
    /// `region_not_initialized`.
    RegionNotInitialized {
        /// The region.
        region_id: RegionId,
    },
    /// `disk_full`.
    DiskFull {
        /// The stores.
        stores: Vec<StoreId>,
    },
    /// `RecoveryInProgress`.
    RecoveryInProgress {
        /// The region.
        region_id: RegionId,
    },
    /// Not a region error on the wire: the answer's `error.abort` (and a pair
    /// with it), since the store's storage has another API version.
    ApiVersionNotMatched,
}
