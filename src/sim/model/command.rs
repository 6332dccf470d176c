use std::sync::Arc;

use crate::range::Key;
use crate::region::{Peer, Region, RegionEpoch, RegionId};

/// An entry of a raft log.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Entry {
    pub(in crate::sim) term: u64,
    /// The number of the proposal, unique in the cluster; 0 for what needs none.
    pub(in crate::sim) id: u64,
    pub(in crate::sim) command: Command,
}

/// What a log entry does when it is applied. Those with an epoch do nothing
/// when the region's is another one by then.
#[derive(Clone, Debug)]
pub(in crate::sim) enum Command {
    /// A new leader's first entry.
    Empty,
    /// An ordinary write.
    Put,
    /// A bulk load.
    Ingest,
    /// Cuts off the old part of the log; nothing of it shows.
    CompactLog,
    Split(Arc<SplitPlan>),
    PrepareMerge(Arc<MergePlan>),
    CommitMerge(Arc<MergeCommit>),
    RollbackMerge,
    ConfChange(Arc<ConfPlan>),
}

impl Command {
    /// Returns whether a lease refuses to propose it: ingest and the admin
    /// commands, but neither the commit nor the rollback of a merge.
    pub(in crate::sim) fn is_refused_kind(&self) -> bool {
        match self {
            Self::Ingest
            | Self::CompactLog
            | Self::Split(_)
            | Self::PrepareMerge(_)
            | Self::ConfChange(_) => true,
            Self::Empty | Self::Put | Self::CommitMerge(_) | Self::RollbackMerge => false,
        }
    }

    pub(in crate::sim) const fn name(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Put => "put",
            Self::Ingest => "ingest",
            Self::CompactLog => "compact log",
            Self::Split(_) => "split",
            Self::PrepareMerge(_) => "prepare merge",
            Self::CommitMerge(_) => "commit merge",
            Self::RollbackMerge => "rollback merge",
            Self::ConfChange(_) => "conf change",
        }
    }
}

/// The right part keeps the id; the left one gets a new one.
#[derive(Debug)]
pub(in crate::sim) struct SplitPlan {
    pub(in crate::sim) epoch: RegionEpoch,
    pub(in crate::sim) key: Key,
    pub(in crate::sim) new_region: RegionId,
    pub(in crate::sim) new_peers: Vec<Peer>,
}

#[derive(Debug)]
pub(in crate::sim) struct MergePlan {
    pub(in crate::sim) epoch: RegionEpoch,
    pub(in crate::sim) target: RegionId,
    pub(in crate::sim) target_epoch: RegionEpoch,
}

#[derive(Debug)]
pub(in crate::sim) struct MergeCommit {
    /// The source as it is after its prepare merge.
    pub(in crate::sim) source: Arc<Region>,
    /// The proposal of the prepare merge.
    pub(in crate::sim) prepare_id: u64,
    /// The target's epoch that the prepare merge named.
    pub(in crate::sim) target_epoch: RegionEpoch,
}

#[derive(Debug)]
pub(in crate::sim) struct ConfPlan {
    pub(in crate::sim) epoch: RegionEpoch,
    pub(in crate::sim) peers: Vec<Peer>,
    /// The single changes it is made of: so much `conf_ver` grows.
    pub(in crate::sim) changes: u64,
}
