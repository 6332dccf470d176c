use super::{PeerId, RegionEpoch, RegionError, RegionId};

/// A region to wait for: `WaitApply` sends its id and epoch only, since the
/// server reads nothing else (tikv `components/backup/src/disk_snap.rs`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WaitTarget {
    /// The region.
    pub region_id: RegionId,
    /// The epoch it is known by; the store compares both numbers.
    pub epoch: RegionEpoch,
}

/// A region to read from as its leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReadTarget {
    /// The region.
    pub region_id: RegionId,
    /// The epoch it is known by; the store compares the version only.
    pub epoch: RegionEpoch,
    /// The peer on the store that is asked.
    pub peer_id: PeerId,
}

/// The answer for one region of a `WaitApply`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaitAnswer {
    /// The region it speaks of, an echo of what was asked; `None` when the
    /// answer names none, which no sound store does.
    pub target: Option<WaitTarget>,
    /// Whether the peer had applied.
    pub result: Result<(), RegionError>,
}

/// The answer to one leader read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReadAnswer {
    /// The region that was read.
    pub region_id: RegionId,
    /// The epoch that was sent.
    pub epoch: RegionEpoch,
    /// `Ok` when the read was served: no region error, no error, no pairs.
    pub result: Result<(), RegionError>,
}
