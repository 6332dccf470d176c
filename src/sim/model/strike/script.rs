use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::region::{RegionId, StoreId};
use crate::sim::model::Cluster;
use crate::sim::model::command::Command;
use crate::sim::model::event::PeerAddress;

/// How often the second step looks for the new leader.
const LOOKS: u32 = 30;

impl Cluster {
    /// A leader is not heard by its peers; they choose another one.
    pub(super) fn begin_election(&mut self) -> bool {
        let Some(at) = self.any_leader() else {
            return false;
        };
        let timeout = self.plan.timing.election_timeout;
        let deaf = timeout * self.rng.random_range(2..6);
        self.silence(at, deaf);
        true
    }

    /// Cuts one peer off from the others for a while; they notice.
    pub(super) fn silence(&mut self, at: PeerAddress, lasting: Duration) {
        let until = self.now + lasting;
        let Some(peer) = self.peer_mut(at.store, at.region) else {
            return;
        };
        peer.deaf_until = until;
        let followers: Vec<StoreId> = self
            .replicas(at.region)
            .filter(|peer| !peer.is_leader())
            .map(|peer| peer.store)
            .collect();
        for store in followers {
            self.start_election_timer(store, at.region, 1);
        }
        let heard = Strike::Heard(at.region);
        self.strike_after(lasting + Duration::from_micros(1), heard);
    }

    /// The first step of a false claim that stays the only one (observations
    /// 13.5): an idle leader is cut off and another one elected.
    pub(super) fn begin_lost_quorum(&mut self) -> bool {
        let Some(at) = self.any_leader() else {
            return false;
        };
        let enough = self
            .region_at(at)
            .is_some_and(|region| region.peers.len() >= 3);
        if !enough {
            return false;
        }
        let lasting = self
            .plan
            .longest
            .max(self.plan.timing.election_timeout * 20);
        self.silence(at, lasting);
        let delay = self.plan.timing.election_timeout;
        self.strike_after(delay, Strike::LoseQuorum(at.region, at.store, LOOKS));
        true
    }

    /// The second step: the new leader takes a command into its log, reaches
    /// nobody and steps down. When its peers hear it again it is elected anew
    /// and commits what it has.
    pub(super) fn lose_quorum(&mut self, region: RegionId, old: StoreId, looks: u32) {
        if looks == 0 || self.triggers.stopped {
            return;
        }
        let timeout = self.plan.timing.election_timeout;
        let found = self
            .replicas(region)
            .find(|peer| peer.is_leader() && peer.store != old)
            .map(|peer| PeerAddress {
                store: peer.store,
                region,
                peer: peer.id,
            });
        let Some(at) = found else {
            self.strike_after(timeout, Strike::LoseQuorum(region, old, looks - 1));
            return;
        };
        let quiet = timeout * 3 + Duration::from_millis(self.rng.random_range(0..8_000));
        let until = self.now + quiet;
        if let Some(peer) = self.peer_mut(at.store, at.region) {
            peer.deaf_until = until;
        }
        let command = match self.rng.random_range(0..3) {
            0 => self.conf_command(at),
            1 => Some(Command::Ingest),
            _ => self.split_command(at),
        };
        if let Some(command) = command {
            self.propose(at.store, at.region, command);
        }
        self.strike_after(quiet + Duration::from_micros(1), Strike::Heard(region));
    }
}
