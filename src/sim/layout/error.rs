use std::fmt;

use crate::region::{PeerId, RegionId, StoreId};

/// Why a layout, or the dump it was read from, is not a sound cluster.
///
/// The message names the region and what is wrong with it, never a key. It does
/// not name the file: whoever read that adds it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The text is not JSON.
    #[error("not JSON: error at line {line}, column {column}")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text stops in the middle, or is empty.
    #[error("cut off: the JSON text ends too early, at line {line}, column {column}")]
    CutOff {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text is JSON, but not a dump of this kind.
    #[error("wrong shape: {what}")]
    WrongShape {
        /// What was expected, and where it was missed.
        what: String,
    },
    /// The dump says how many entries it holds, and holds another number.
    #[error("count mismatch: the dump says that it holds {said} {what}, but it holds {found}")]
    CountMismatch {
        /// What is counted: `regions` or `stores`.
        what: &'static str,
        /// The number in `count`.
        said: u64,
        /// The number of entries.
        found: usize,
    },
    /// There is no region at all.
    #[error("there is no region")]
    NoRegions,
    /// An entry of the dump has no id, so that only its place can be named.
    #[error("entry {index} of the {what} (counted from 0) has no id")]
    MissingId {
        /// What is listed: `regions` or `stores`.
        what: &'static str,
        /// The place in the list, from 0.
        index: usize,
    },
    /// Something is wrong with one region.
    #[error("region {region_id}: {problem}")]
    Region {
        /// The region.
        region_id: RegionId,
        /// What is wrong with it.
        problem: RegionProblem,
    },
    /// Two regions have one id.
    #[error("region {region_id}: the id is there twice")]
    DuplicateRegion {
        /// The id.
        region_id: RegionId,
    },
    /// Two peers of a region have one id.
    #[error("region {region_id}: its peer id {peer_id} is there twice")]
    DuplicatePeer {
        /// A region that has the peer.
        region_id: RegionId,
        /// The id.
        peer_id: PeerId,
    },
    /// Two regions hold the same keys.
    #[error("region {region_id}: overlaps with region {other}")]
    Overlap {
        /// The region that starts earlier.
        region_id: RegionId,
        /// The region that starts before the first one ends.
        other: RegionId,
    },
    /// No region holds the keys between two neighbors, or at an end.
    #[error("{}", GapMessage { after: *after, before: *before })]
    Gap {
        /// The region before the gap; `None` when the lowest keys are missing.
        after: Option<RegionId>,
        /// The region after the gap; `None` when the highest keys are missing.
        before: Option<RegionId>,
    },
    /// Two stores have one id.
    #[error("store {store_id}: the id is there twice")]
    DuplicateStore {
        /// The id.
        store_id: StoreId,
    },
    /// Something is wrong with one store.
    #[error("store {store_id}: {problem}")]
    Store {
        /// The store.
        store_id: StoreId,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl LayoutError {
    /// Returns the region it is about, where there is one; the earlier one when
    /// there are two.
    pub fn region_id(&self) -> Option<RegionId> {
        match self {
            Self::Region { region_id, .. }
            | Self::DuplicateRegion { region_id }
            | Self::DuplicatePeer { region_id, .. }
            | Self::Overlap { region_id, .. } => Some(*region_id),
            Self::Gap { after, before } => after.or(*before),
            Self::NotJson { .. }
            | Self::CutOff { .. }
            | Self::WrongShape { .. }
            | Self::CountMismatch { .. }
            | Self::NoRegions
            | Self::MissingId { .. }
            | Self::DuplicateStore { .. }
            | Self::Store { .. } => None,
        }
    }

    pub(super) fn region(region_id: RegionId, problem: RegionProblem) -> Self {
        Self::Region { region_id, problem }
    }
}

/// What is wrong with one region of a layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionProblem {
    /// A field is not there, or is null.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The id is 0, which PD never gives.
    #[error("the id is 0")]
    ZeroId,
    /// A number of it is so large that no cluster got that far, and none could
    /// go on from there.
    #[error("a number of it is 2^63 or more")]
    NumberTooLarge,
    /// A key is not written as it has to be.
    #[error("its {bound} key {problem}")]
    BadKey {
        /// Which of the two keys.
        bound: Bound,
        /// What is wrong with it.
        problem: KeyProblem,
    },
    /// The end key is not above the start key.
    #[error("its end key is not above its start key")]
    EmptyRange,
    /// It has no peers.
    #[error("it has no peers")]
    NoPeers,
    /// A peer has the id 0, or store 0.
    #[error("a peer of it has the id 0 or is on store 0")]
    ZeroPeer,
    /// A peer has a role that is not known.
    #[error("its peer {0} has an unknown role")]
    UnknownRole(PeerId),
    /// Two peers are on one store.
    #[error("it has two peers on store {0}")]
    TwoPeersOnStore(StoreId),
    /// It has no voter.
    #[error("it has no peer that votes")]
    NoVoter,
    /// The leader is not one of the peers.
    #[error("its leader (on store {0}) is not among its peers")]
    ForeignLeader(StoreId),
    /// The leader does not vote.
    #[error("its leader (on store {0}) is a learner")]
    LearnerLeads(StoreId),
    /// A peer is on a store that is not listed.
    #[error("it has a peer on store {0}, which is not among the stores")]
    UnknownStore(StoreId),
    /// A peer is on a store that is gone for good.
    #[error("it has a peer on store {0}, which is a tombstone")]
    OnTombstone(StoreId),
    /// A TiFlash store holds a voter.
    #[error("it has a voter on store {0}, which is labeled as TiFlash")]
    VoterOnTiflash(StoreId),
}

/// One of the two keys of a range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// The first key.
    Start,
    /// The key before which the range ends.
    End,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::End => "end",
        })
    }
}

/// Why a key of a dump cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The form of PD 3 and older.
    #[error("is escaped text, the form of version 3 and older; take the dump with a newer pd-ctl")]
    EscapedText,
    /// An odd number of hex digits.
    #[error("has an odd number of hex digits")]
    OddHex,
    /// Something else than hex digits.
    #[error("is not hex")]
    NotHex,
}

/// Says where keys are missing.
struct GapMessage {
    after: Option<RegionId>,
    before: Option<RegionId>,
}

impl fmt::Display for GapMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.after, self.before) {
            (Some(after), Some(before)) => write!(
                f,
                "region {after}: gap between its end and region {before}, the next one"
            ),
            (Some(after), None) => write!(
                f,
                "region {after}: gap after its end, though it is the last one"
            ),
            (None, Some(before)) => write!(
                f,
                "region {before}: gap before its start, though it is the first one"
            ),
            (None, None) => f.write_str("there is no region"),
        }
    }
}
