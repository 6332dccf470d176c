use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::range::Key;
use crate::region::{Peer, PeerId, PeerRole, Region, RegionId, StoreId};
use crate::sim::model::Cluster;
use crate::sim::model::command::{Command, MergePlan, SplitPlan};
use crate::sim::model::event::PeerAddress;
use crate::sim::model::peer::{PeerNode, Role};
use crate::time::Timestamp;

impl Cluster {
    /// Draws one of the peers that lead.
    pub(super) fn any_leader(&mut self) -> Option<PeerAddress> {
        let leaders = self.leaders();
        if leaders.is_empty() {
            return None;
        }
        let at = self.rng.random_range(0..leaders.len());
        leaders.get(at).copied()
    }

    pub(super) fn region_at(&self, address: PeerAddress) -> Option<Arc<Region>> {
        let node = self.stores.get(&address.store)?;
        let peer = node.peers.get(&address.region)?;
        Some(Arc::clone(&peer.region))
    }

    pub(super) fn peer_mut(&mut self, store: StoreId, region: RegionId) -> Option<&mut PeerNode> {
        self.stores.get_mut(&store)?.peers.get_mut(&region)
    }

    pub(super) fn begin_writes(&mut self) -> bool {
        for _ in 0..self.rng.random_range(1..=6) {
            if let Some(at) = self.any_leader() {
                let delay = Duration::from_micros(self.rng.random_range(0..200_000));
                self.strike_after(delay, Strike::Write(at.store, at.region, at.peer));
            }
        }
        true
    }

    pub(super) fn write(&mut self, store: StoreId, region: RegionId, _peer: PeerId) {
        let command = match self.rng.random_range(0..10) {
            0..6 => Command::Put,
            6..9 => Command::Ingest,
            _ => Command::CompactLog,
        };
        self.propose(store, region, command);
    }

    pub(super) fn begin_split(&mut self) -> bool {
        let Some(at) = self.any_leader() else {
            return false;
        };
        match self.split_command(at) {
            Some(command) => self.propose(at.store, at.region, command),
            None => false,
        }
    }

    pub(in crate::sim::model) fn split_command(&mut self, at: PeerAddress) -> Option<Command> {
        let region = self.region_at(at)?;
        let mut key = region.range.start().as_bytes().to_vec();
        key.push(self.rng.random_range(1..=255));
        let key = Key::new(key);
        if !region.range.contains_key(&key) {
            return None;
        }
        let new_region = RegionId(self.take_id());
        let new_peers = region
            .peers
            .iter()
            .map(|peer| Peer {
                id: PeerId(self.take_id()),
                ..*peer
            })
            .collect();
        Some(Command::Split(Arc::new(SplitPlan {
            epoch: region.epoch,
            key,
            new_region,
            new_peers,
        })))
    }

    /// Merges a region into the neighbor behind; tries all that lead, from
    /// anyone on.
    pub(in crate::sim::model) fn begin_merge(&mut self) -> bool {
        let mut leaders = self.leaders();
        if leaders.is_empty() {
            return false;
        }
        let first = self.rng.random_range(0..leaders.len());
        leaders.rotate_left(first);
        // Finding a neighbor costs a look at every peer.
        for at in leaders.into_iter().take(40) {
            if let Some(command) = self.merge_command(at)
                && self.propose(at.store, at.region, command)
            {
                return true;
            }
        }
        false
    }

    /// A merge into the neighbor behind, if both are on the same stores.
    pub(super) fn merge_command(&mut self, at: PeerAddress) -> Option<Command> {
        let source = self.region_at(at)?;
        let end = source.range.end().as_key()?;
        let neighbor = self
            .stores
            .values()
            .flat_map(|node| node.peers.values())
            .find(|peer| peer.is_leader() && peer.region.range.start() == end)?;
        let target = &neighbor.region;
        let plain = |region: &Region| region.peers.iter().all(|p| p.role == PeerRole::Voter);
        let same_stores = source.peers.len() == target.peers.len()
            && source
                .peers
                .iter()
                .all(|peer| target.peer_on(peer.store_id).is_some());
        if !same_stores || !plain(&source) || !plain(target) || neighbor.merge.is_some() {
            return None;
        }
        Some(Command::PrepareMerge(Arc::new(MergePlan {
            epoch: source.epoch,
            target: target.id,
            target_epoch: target.epoch,
        })))
    }

    pub(super) fn begin_slow_merge(&mut self) -> bool {
        let until = self.now + self.lasting(100);
        if !self.begin_merge() {
            return false;
        }
        self.triggers.merges_held_until = self.triggers.merges_held_until.max(until);
        true
    }

    /// Moves a leader away, unless its store is suspended.
    pub(super) fn begin_transfer(&mut self) -> bool {
        let Some(at) = self.any_leader() else {
            return false;
        };
        let Some(region) = self.region_at(at) else {
            return false;
        };
        let others: Vec<Peer> = region
            .peers
            .iter()
            .filter(|peer| peer.store_id != at.store && peer.role == PeerRole::Voter)
            .copied()
            .collect();
        if others.is_empty() {
            return false;
        }
        let Some(&to) = others.get(self.rng.random_range(0..others.len())) else {
            return false;
        };
        self.transfer(at, to)
    }

    /// Moves a leader to a certain peer, unless its store is suspended.
    pub(super) fn transfer(&mut self, at: PeerAddress, to: Peer) -> bool {
        let now = self.now;
        let node = self.stores.get(&at.store);
        if node.is_none_or(|node| node.lease.is_suspended(now)) {
            return false;
        }
        self.with_peer(at.store, at.region, false, |peer, ctx| {
            if let Role::Leader(leader) = &mut peer.role {
                leader.transfer = Some((to, ctx.now));
                leader.lease_until = Timestamp::ZERO;
            }
            // The answer to a heartbeat shows whether it has caught up.
            peer.wake(ctx);
            peer.broadcast(ctx);
        });
        true
    }

    /// What a leader proposes stays with it for a while.
    pub(super) fn begin_held_appends(&mut self) -> bool {
        let Some(at) = self.any_leader() else {
            return false;
        };
        let until = self.now + self.lasting(5);
        if let Some(peer) = self.peer_mut(at.store, at.region) {
            peer.hold_until = until;
        }
        let command = match self.rng.random_range(0..5) {
            0 => self.split_command(at),
            1 => self.merge_command(at),
            2 => self.conf_command(at),
            3 => Some(Command::Ingest),
            _ => Some(Command::Put),
        };
        command.is_some_and(|command| self.propose(at.store, at.region, command))
    }
}
