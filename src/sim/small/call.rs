use crate::machine::RequestId;
use crate::region::RegionErrorKind;

use super::store::Target;

/// A call of ours that is not answered yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Call {
    pub(super) ask: Ask,
    /// What was answered and has not arrived yet.
    pub(super) reply: Option<Reply>,
    /// Whether the machine waits for it no more.
    pub(super) is_old: bool,
    pub(super) number: RequestId,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Ask {
    Stores,
    Claims(u8),
    /// The positions of a range, and the most regions to tell.
    Scan(u8, u8, u32),
    Read(u8, Target),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Reply {
    Claims(Vec<Claimed>),
    Read(Result<(), RegionErrorKind>),
}

/// A region as a store claims it or PD knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Claimed {
    pub(super) region: u8,
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) version: u8,
    pub(super) is_pending: bool,
    /// As PD knows it.
    pub(super) leader: Option<u8>,
}
