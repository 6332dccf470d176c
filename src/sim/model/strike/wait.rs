//! What makes a wait say less than it seems to.

use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::region::{PeerRole, RegionId, StoreId, WaitTarget};
use crate::sim::fault::log_uniform;
use crate::sim::model::command::Command;
use crate::sim::model::event::PeerAddress;
use crate::sim::model::{CallId, Cluster};

impl Cluster {
    /// A wait of somebody who is gone lasts at some leaders of a store: new
    /// waits for these regions are answered `Duplicated`.
    pub(super) fn begin_orphan_wait(&mut self) -> bool {
        let now = self.now;
        let Some(store) = self.any_store(|node| {
            // Without a lease nobody could have waited. Before a client has its
            // stream there, somebody may have come and gone.
            node.raft_runs() && (node.lease.is_suspended(now) || node.stream.is_none())
        }) else {
            return false;
        };
        let mut leaders = self.leaders();
        leaders.retain(|at| at.store == store);
        if leaders.is_empty() {
            return false;
        }
        let first = self.rng.random_range(0..leaders.len());
        leaders.rotate_left(first);
        leaders.truncate(self.rng.random_range(1..=8));
        self.slow_down(store);
        self.lease_of_nobody(store);
        let orphan = CallId(self.next_call);
        self.next_call += 1;
        let mut any = false;
        for at in leaders {
            self.propose(at.store, at.region, Command::Put);
            if let Some(peer) = self.peer_mut(at.store, at.region)
                && peer.wait.is_none()
            {
                let target = WaitTarget {
                    region_id: at.region,
                    epoch: peer.region.epoch,
                };
                any |= peer.wait(orphan, 0, target).is_none();
            }
        }
        any
    }

    /// Lets a store apply slowly for a while.
    fn slow_down(&mut self, store: StoreId) {
        let until = self.now + self.lasting(50);
        let factor = log_uniform(&mut self.rng, 10, 400) as u32;
        if let Some(node) = self.stores.get_mut(&store) {
            node.slow_apply = (until, factor);
        }
    }

    /// Leaves the lease of somebody who came and vanished, where there is none.
    fn lease_of_nobody(&mut self, store: StoreId) {
        let (now, seconds) = (self.now, self.rng.random_range(1..20));
        let Some(node) = self.stores.get_mut(&store) else {
            return;
        };
        if !node.lease.is_suspended(now) {
            node.lease.update(seconds, now);
            let end = node.lease.free_at();
            self.history.leased(store, false, now, end);
        }
    }

    /// A leader with something left to apply is followed by another one and has
    /// not voted for it: it answers a wait with success at once.
    pub(super) fn begin_stale_follower(&mut self) -> bool {
        let Some(at) = self.leader_of_three() else {
            return false;
        };
        self.slow_down(at.store);
        if !self.propose(at.store, at.region, Command::Put) {
            return false;
        }
        let reached = self.plan.timing.peer_delay * 8;
        self.strike_after(reached, Strike::Silence(at));
        true
    }

    /// A leader is taken out of its region. Whatever waits there is answered as
    /// success when the peer goes away.
    pub(super) fn begin_leader_removed(&mut self) -> bool {
        let Some(at) = self.leader_of_three() else {
            return false;
        };
        let Some(region) = self.region_at(at) else {
            return false;
        };
        let mut peers = region.peers.clone();
        peers.retain(|peer| peer.store_id != at.store);
        let command = super::change::plan(&region, peers, 1);
        if !self.propose(at.store, at.region, command) {
            return false;
        }
        self.slow_down(at.store);
        let delay = self.lasting(1_000);
        self.add_voter_later(at.region, at.store, delay);
        true
    }

    /// An idle leader is cut off for long and another one elected: two stores
    /// claim the region.
    pub(super) fn begin_two_claims(&mut self) -> bool {
        let Some(at) = self.leader_of_three() else {
            return false;
        };
        let lasting = self.lasting(2_000);
        self.silence(at, lasting);
        true
    }

    /// A leader is followed by another one, and follows that one in turn.
    pub(super) fn begin_leader_returns(&mut self) -> bool {
        let Some(at) = self.leader_of_three() else {
            return false;
        };
        let timeout = self.plan.timing.election_timeout;
        self.silence(at, timeout * 3);
        self.strike_after(timeout, Strike::Return(at, 40));
        true
    }

    /// Lets a leader come back once another one is elected.
    pub(super) fn leader_returns(&mut self, old: PeerAddress, looks: u32) {
        if looks == 0 || self.triggers.stopped {
            return;
        }
        let timeout = self.plan.timing.election_timeout;
        let now = self.now;
        let other = self
            .leader_of(old.region)
            .filter(|peer| peer.store != old.store)
            .map(|peer| PeerAddress {
                store: peer.store,
                region: old.region,
                peer: peer.id,
            });
        let deaf = self.peer_mut(old.store, old.region).map(|peer| {
            // It comes back early, so that it is up to date in time.
            if other.is_some() {
                peer.deaf_until = now;
            }
            (peer.leader.map(|leader| leader.id), peer.id)
        });
        let (Some(other), Some((followed, id))) = (other, deaf) else {
            self.strike_after(timeout / 4, Strike::Return(old, looks - 1));
            return;
        };
        if followed != Some(other.peer) || id != old.peer {
            self.strike_after(Duration::ZERO, Strike::Heard(old.region));
            self.strike_after(timeout / 4, Strike::Return(old, looks - 1));
            return;
        }
        // It is asked first who leads, and asks for votes.
        let until = now + timeout * 4;
        if let Some(peer) = self.peer_mut(other.store, other.region) {
            peer.deaf_until = until;
        }
        self.start_election_timer(old.store, old.region, 0);
        let heard = Strike::Heard(old.region);
        self.strike_after(timeout * 4 + Duration::from_micros(1), heard);
    }

    /// Draws a leader that the others can replace; in half of the cases one
    /// that is being waited for, if there is one.
    fn leader_of_three(&mut self) -> Option<PeerAddress> {
        let waited = self.rng.random_ratio(1, 2);
        let mut leaders = self.leaders();
        let voters = |region: RegionId, store: StoreId| {
            let node = self.stores.get(&store);
            let peer = node.and_then(|node| node.peers.get(&region));
            peer.map(|peer| {
                let roles = peer.region.peers.iter().map(|peer| peer.role);
                let plain = roles.clone().all(|role| role == PeerRole::Voter);
                (plain && roles.count() >= 3, peer.wait.is_some())
            })
        };
        leaders.retain(|at| voters(at.region, at.store).is_some_and(|(enough, _)| enough));
        if waited {
            let waited_for = |at: &PeerAddress| {
                voters(at.region, at.store).is_some_and(|(_, waited_for)| waited_for)
            };
            if leaders.iter().any(waited_for) {
                leaders.retain(waited_for);
            }
        }
        if leaders.is_empty() {
            return None;
        }
        let at = self.rng.random_range(0..leaders.len());
        leaders.get(at).copied()
    }
}
