use std::fmt;

use super::{PeerId, RegionId, StoreId};
use crate::range::KeyRange;

/// A region's epoch: two counters that tell its generations apart.
///
/// Two epochs match only when both numbers are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RegionEpoch {
    /// Grows with each change of the peers.
    pub conf_ver: u64,
    /// Grows with each change of the boundaries.
    pub version: u64,
}

impl fmt::Display for RegionEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.conf_ver, self.version)
    }
}

/// The part a peer has in its raft group; `metapb.PeerRole`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PeerRole {
    /// Votes.
    #[default]
    Voter,
    /// Only follows.
    Learner,
    /// Becomes a voter when the joint configuration is left; votes already.
    IncomingVoter,
    /// Becomes a learner when the joint configuration is left; votes still.
    DemotingVoter,
}

impl PeerRole {
    /// Returns whether the peer votes now, joint configurations included.
    pub const fn is_voter(self) -> bool {
        !matches!(self, Self::Learner)
    }
}

/// A replica of a region on a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Peer {
    /// The id of this replica.
    pub id: PeerId,
    /// The store it lives on.
    pub store_id: StoreId,
    /// Its part in the raft group.
    pub role: PeerRole,
}

/// A region as a store or PD describes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Region {
    /// The id, kept by one of the parts when a region splits.
    pub id: RegionId,
    /// The keys it serves.
    pub range: KeyRange,
    /// Its generation.
    pub epoch: RegionEpoch,
    /// Its replicas.
    pub peers: Vec<Peer>,
}

impl Region {
    /// Returns the replica on `store`, if there is one.
    pub fn peer_on(&self, store: StoreId) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.store_id == store)
    }
}

/// A region that a store says to lead; one answer of `CheckPendingAdminOp`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Claim {
    /// The region as the claiming leader sees it.
    pub region: Region,
    /// Whether a conf change, a split or a merge is under way there. `false`
    /// proves little: what is proposed but not committed does not show.
    pub has_pending_admin: bool,
}

/// A region as PD's scan tells it. PD can lag in every part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScannedRegion {
    /// The region.
    pub region: Region,
    /// The store of the leader; `None` when PD knows none (also leader store 0).
    pub leader: Option<StoreId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joint_voters_vote() {
        assert!(PeerRole::IncomingVoter.is_voter());
        assert!(PeerRole::DemotingVoter.is_voter());
        assert!(!PeerRole::Learner.is_voter());
    }
}
