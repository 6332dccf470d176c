//! Plain types for regions and stores, and for what is asked of them and
//! answered, free of any wire format.
//!
//! The names are those of TiKV's `metapb`: a *region* is a raft group that
//! serves one key range, a *store* is one TiKV process, a *peer* is a region's
//! replica on a store.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod answer;
mod description;
mod error;
mod id;
mod store;

pub use answer::{ReadAnswer, ReadTarget, WaitAnswer, WaitTarget};
pub use description::{Claim, Peer, PeerRole, Region, RegionEpoch, ScannedRegion};
pub use error::{RegionError, RegionErrorKind};
pub use id::{PeerId, RegionId, StoreId};
pub use store::{Store, StoreState};
