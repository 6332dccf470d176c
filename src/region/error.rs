use std::fmt;
use std::time::Duration;

/// Why a store did not confirm a wait, or did not serve a leader read, for one
/// region. The kinds follow `errorpb.Error`; what the error carries beyond its
/// kind is a hint that can be older than what is known already, so it is left
/// behind and the range is looked at anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum RegionErrorKind {
    /// The peer's epoch is another one.
    EpochNotMatch,
    /// The store has no peer of the region.
    RegionNotFound,
    /// The peer is not the leader.
    NotLeader,
    /// The raft term changed, or the leader has no quorum.
    StaleCommand,
    /// The store asks to wait for `backoff`.
    ServerIsBusy {
        /// The delay the store suggests; zero when it names none.
        backoff: Duration,
    },
    /// An earlier wait for the region is still under way at that peer.
    Duplicated,
    /// A merge, split or conf change is in the way (`read_index_not_ready`,
    /// `proposal_in_merging_mode`, `data_is_not_ready`, `region_not_initialized`).
    NotReady,
    /// The request named another store or peer than the one that answered
    /// (`store_not_match`, `mismatch_peer_id`).
    WrongPeer,
    /// The region cannot serve now (flashback, recovery, witness, disk full).
    Unserved,
    /// The store's engine has no such call at all; the same for every region.
    Unsupported,
    /// Anything else.
    Other,
}

/// A region's answer that is not success: the kind and the store's words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionError {
    /// What it is, for decisions.
    pub kind: RegionErrorKind,
    /// What the store said, for people. Free of keys.
    pub message: String,
}

impl RegionError {
    /// Returns an error of `kind` that says `message`.
    pub fn new(kind: RegionErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RegionError {}
