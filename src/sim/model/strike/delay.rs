use std::time::Duration;

use rand::Rng;

use crate::region::StoreId;
use crate::sim::fault::{FaultKind, log_uniform};
use crate::sim::model::Cluster;

impl Cluster {
    /// Messages of one store are late for a while: those between it and clients,
    /// or those between it and the other stores.
    pub(super) fn begin_delay(&mut self, kind: FaultKind) -> bool {
        let until = self.now + self.lasting(50);
        let most = (self.plan.longest.as_micros() as u64 / 2).max(2_000);
        let late = log_uniform(&mut self.rng, 1_000, most);
        let Some(store) = self.any_store(|_| true) else {
            return false;
        };
        let Some(node) = self.stores.get_mut(&store) else {
            return false;
        };
        if kind == FaultKind::PeerDelay {
            node.peer_delay = (until, late);
        } else {
            node.client_delay = (until, late);
        }
        true
    }

    /// Draws by how much a message between two stores is late.
    pub(in crate::sim::model) fn late_between(&mut self, a: StoreId, b: StoreId) -> Duration {
        let of = |store| {
            self.stores
                .get(&store)
                .filter(|node| self.now < node.peer_delay.0)
                .map_or(0, |node| node.peer_delay.1)
        };
        let most = of(a).max(of(b));
        if most == 0 {
            return Duration::ZERO;
        }
        Duration::from_micros(self.rng.random_range(0..=most))
    }
}
