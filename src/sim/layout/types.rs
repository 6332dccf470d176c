use crate::region::{Region, Store, StoreId};

/// The stores and regions of a cluster at rest.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// All stores, also those that take no part, in order of their ids.
    pub stores: Vec<Store>,
    /// The regions in key order, from the lowest key to the unbounded end.
    pub regions: Vec<LayoutRegion>,
}

/// A region of a layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LayoutRegion {
    /// The region.
    pub region: Region,
    /// The store of its leader; `None` for a region that has none at the start.
    pub leader: Option<StoreId>,
}
