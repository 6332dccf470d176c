use super::Slot;
use crate::region::{PeerId, RegionEpoch, RegionId};

/// A region at one store, without its range: what the store claims and how far
/// its proof is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::machine) struct Task {
    pub(in crate::machine) slot: Slot,
    pub(in crate::machine) id: RegionId,
    pub(in crate::machine) epoch: RegionEpoch,
    pub(in crate::machine) peer_id: PeerId,
    pub(in crate::machine) state: TaskState,
    /// Whether the store's last complete listing claimed it.
    pub(in crate::machine) claimed: bool,
    /// Whether it did so with nothing pending.
    pub(in crate::machine) clean: bool,
}

/// How far a region's proof is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::machine) enum TaskState {
    /// Known; nothing to do for it now.
    Idle,
    /// To be asked, as soon as the window has room.
    Ready,
    /// An earlier wait with another epoch is unanswered; asked after it.
    Blocked,
    /// The wait is in flight.
    Waiting,
    /// The wait is confirmed; to be read.
    Confirmed,
    /// The read is in flight.
    Reading,
    /// Proven.
    Proven,
}

impl TaskState {
    /// Returns whether somebody is being asked, or about to be.
    pub(in crate::machine) const fn is_live(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Blocked | Self::Waiting | Self::Confirmed | Self::Reading
        )
    }
}

impl Task {
    /// Returns whether somebody is being asked, or about to be, so that its
    /// range needs nobody else.
    pub(in crate::machine) const fn is_live(&self) -> bool {
        self.claimed && self.state.is_live()
    }
}
