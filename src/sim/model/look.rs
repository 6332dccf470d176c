//! What a test may look at in a cluster, beyond what a client sees.

use std::sync::Arc;

use super::Cluster;
use super::history::Formed;
use crate::region::{Region, RegionId, StoreId};
use crate::time::Timestamp;

/// Looks at the truth, for properties of one's own.
impl Cluster {
    /// Returns whether a store is suspended now: refuses splits, merges, moves,
    /// leader transfers and bulk loads, whoever asked for that.
    pub fn is_suspended(&self, store: StoreId) -> bool {
        let node = self.stores.get(&store);
        node.is_some_and(|node| node.lease.is_suspended(self.now))
    }

    /// Returns when a store was suspended so far: stretches without a break,
    /// each with its begin and its end, which lies in the future when it is
    /// suspended now.
    pub fn suspensions(&self, store: StoreId) -> Vec<(Timestamp, Timestamp)> {
        let stretches = self.history.leases.get(&store);
        stretches
            .into_iter()
            .flatten()
            .map(|stretch| (stretch.start, stretch.end))
            .collect()
    }

    /// Returns every region that has a leader, as the leader of the newest term
    /// knows it, with the store of that leader. Regions without a leader are
    /// missing.
    pub fn led_regions(&self) -> Vec<(Arc<Region>, StoreId)> {
        let mut ids: Vec<RegionId> = self
            .stores
            .values()
            .flat_map(|node| node.peers.keys().copied())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter()
            .filter_map(|id| self.leader_of(id))
            .map(|leader| (Arc::clone(&leader.region), leader.store))
            .collect()
    }

    /// Returns what is not settled now: commands of the kinds that a lease
    /// refuses which are not applied but are or can still be committed, and
    /// merges between their two steps. While anything is, no hold is true.
    pub fn unsettled(&self) -> Vec<String> {
        crate::sim::oracle::unsettled(self)
    }
}

impl Cluster {
    /// Returns when PD had, or will have, its leader back for the last time.
    pub(in crate::sim) fn pd_back_at(&self) -> Timestamp {
        self.pd.down_until
    }

    /// Returns since when the peer of `region` on `store` is what it is.
    pub(in crate::sim) fn formed(&self, region: RegionId, store: StoreId) -> Formed {
        let forms = &self.history.forms;
        forms.get(&(region, store)).copied().unwrap_or_default()
    }
}
