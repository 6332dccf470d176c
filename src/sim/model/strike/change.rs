use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::region::{Peer, PeerId, PeerRole, Region, RegionId, StoreId};
use crate::sim::model::Cluster;
use crate::sim::model::command::{Command, ConfPlan};
use crate::sim::model::event::PeerAddress;

/// How often a follow-up step is tried while it is refused.
const TRIES: u32 = 40;

impl Cluster {
    pub(super) fn begin_conf_change(&mut self) -> bool {
        if self.rng.random_ratio(1, 3) {
            return self.begin_joint(true);
        }
        let Some(at) = self.any_leader() else {
            return false;
        };
        match self.conf_command(at) {
            Some(command) => self.propose(at.store, at.region, command),
            None => false,
        }
    }

    /// Adds a voter where there is room, or removes one; one that was needed
    /// comes back on the same store later.
    pub(in crate::sim::model) fn conf_command(&mut self, at: PeerAddress) -> Option<Command> {
        let region = self.region_at(at)?;
        if region.peers.iter().any(|peer| peer.role != PeerRole::Voter) {
            return None;
        }
        let free = self.free_stores(&region);
        let mut peers = region.peers.clone();
        if peers.len() <= 3 && !free.is_empty() {
            let store_id = *free.get(self.rng.random_range(0..free.len()))?;
            peers.push(Peer {
                id: PeerId(self.take_id()),
                store_id,
                role: PeerRole::Voter,
            });
        } else if peers.len() >= 3 {
            let removed = peers.remove(self.rng.random_range(0..peers.len()));
            if peers.len() == 2 {
                let delay = self.lasting(20);
                self.strike_after(delay, Strike::AddVoter(region.id, removed.store_id, TRIES));
            }
        } else {
            return None;
        }
        Some(plan(&region, peers, 1))
    }

    /// Returns the stores that could take a peer of the region.
    fn free_stores(&self, region: &Region) -> Vec<StoreId> {
        self.stores
            .values()
            .filter(|node| node.info.takes_part() && node.raft_runs())
            .map(|node| node.info.id)
            .filter(|&store| region.peer_on(store).is_none())
            .collect()
    }

    /// Replaces a follower through a joint configuration, which is left soon
    /// (`leave`) or stays.
    pub(in crate::sim::model) fn begin_joint(&mut self, leave: bool) -> bool {
        for _ in 0..8 {
            let Some(at) = self.any_leader() else {
                return false;
            };
            let Some(region) = self.region_at(at) else {
                return false;
            };
            let Some(peers) = self.joint_peers(at, &region) else {
                continue;
            };
            if self.propose(at.store, at.region, plan(&region, peers, 2)) {
                if leave {
                    let delay = self.lasting(5);
                    self.strike_after(delay, Strike::LeaveJoint(region.id, TRIES));
                }
                return true;
            }
        }
        false
    }

    fn joint_peers(&mut self, at: PeerAddress, region: &Region) -> Option<Vec<Peer>> {
        if region.peers.iter().any(|peer| peer.role != PeerRole::Voter) {
            return None;
        }
        let free = self.free_stores(region);
        if free.is_empty() {
            return None;
        }
        let store_id = *free.get(self.rng.random_range(0..free.len()))?;
        let mut peers = region.peers.clone();
        let leaving = peers
            .iter_mut()
            .find(|peer| peer.store_id != at.store || region.peers.len() == 1)?;
        leaving.role = PeerRole::DemotingVoter;
        peers.push(Peer {
            id: PeerId(self.take_id()),
            store_id,
            role: PeerRole::IncomingVoter,
        });
        Some(peers)
    }

    /// Leaves a joint configuration; a lease refuses it, so it is tried again.
    pub(in crate::sim::model) fn leave_joint(&mut self, region: RegionId, tries: u32) {
        let Some(leader) = self.leader_of(region) else {
            return self.again(Strike::LeaveJoint(region, tries.saturating_sub(1)), tries);
        };
        let (store, now) = (leader.store, Arc::clone(&leader.region));
        if !now.peers.iter().any(|peer| is_joint(peer.role)) {
            return;
        }
        if let Some(own) = now.peer_on(store)
            && own.role == PeerRole::DemotingVoter
        {
            // A leader does not leave a configuration in which it is to go: another
            // one has to lead first.
            let stays = |peer: &&Peer| peer.role.is_voter() && peer.id != own.id;
            let heir = now
                .peers
                .iter()
                .find(|peer| stays(peer) && peer.role != PeerRole::DemotingVoter);
            if let Some(heir) = heir {
                self.transfer(
                    PeerAddress {
                        store,
                        region,
                        peer: own.id,
                    },
                    *heir,
                );
            }
            return self.again(Strike::LeaveJoint(region, tries.saturating_sub(1)), tries);
        }
        let left = now
            .peers
            .iter()
            .map(|peer| Peer {
                role: match peer.role {
                    PeerRole::IncomingVoter => PeerRole::Voter,
                    PeerRole::DemotingVoter => PeerRole::Learner,
                    other => other,
                },
                ..*peer
            })
            .collect();
        if !self.propose(store, region, plan(&now, left, 2)) {
            self.again(Strike::LeaveJoint(region, tries.saturating_sub(1)), tries);
        }
    }

    pub(super) fn add_voter_later(&mut self, region: RegionId, on: StoreId, delay: Duration) {
        self.strike_after(delay, Strike::AddVoter(region, on, TRIES));
    }

    pub(super) fn add_voter(&mut self, region: RegionId, on: StoreId, tries: u32) {
        let again = Strike::AddVoter(region, on, tries.saturating_sub(1));
        let Some(leader) = self.leader_of(region) else {
            return self.again(again, tries);
        };
        let (store, now) = (leader.store, Arc::clone(&leader.region));
        if now.peer_on(on).is_some() {
            return self.again(again, tries);
        }
        let mut peers = now.peers.clone();
        peers.push(Peer {
            id: PeerId(self.take_id()),
            store_id: on,
            role: PeerRole::Voter,
        });
        if !self.propose(store, region, plan(&now, peers, 1)) {
            self.again(again, tries);
        }
    }

    fn again(&mut self, strike: Strike, tries: u32) {
        if tries > 0 {
            let delay = Duration::from_millis(self.rng.random_range(50..2_000));
            self.strike_after(delay, strike);
        }
    }

    /// Lets every joint configuration be left.
    pub(super) fn leave_all_joints(&mut self) {
        for at in self.leaders() {
            let joint = self
                .region_at(at)
                .is_some_and(|region| region.peers.iter().any(|p| is_joint(p.role)));
            if joint {
                self.strike_after(Duration::ZERO, Strike::LeaveJoint(at.region, TRIES));
            }
        }
    }

    /// A store joins, empty.
    pub(in crate::sim::model) fn begin_new_store(&mut self) -> bool {
        let id = StoreId(self.take_id());
        let offset = self.rng.random_range(1_000_000..100_000_000);
        let version = self
            .stores
            .values()
            .map(|node| node.info.version.clone())
            .next()
            .unwrap_or_default();
        let info = crate::region::Store {
            id,
            address: format!("tikv-{id}.invalid:20160"),
            version,
            ..crate::region::Store::default()
        };
        let node = crate::sim::model::node::StoreNode::new(info, offset);
        self.stores.insert(id, node);
        true
    }
}

fn is_joint(role: PeerRole) -> bool {
    matches!(role, PeerRole::IncomingVoter | PeerRole::DemotingVoter)
}

pub(super) fn plan(region: &Region, peers: Vec<Peer>, changes: u64) -> Command {
    Command::ConfChange(Arc::new(ConfPlan {
        epoch: region.epoch,
        peers,
        changes,
    }))
}
