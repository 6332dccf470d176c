//! Peers that a region has and their store does not know yet: they vote, so that
//! a region can grow from one peer to two and keep a leader.

use super::Cluster;
use super::event::PeerAddress;
use super::peer::{Message, PeerNode};
use crate::region::{Peer, PeerId, Region};

impl Cluster {
    /// Returns whether a peer is on its store, or could come into being there
    /// when somebody asks.
    pub(super) fn can_answer(&self, peer: &Peer, region: &Region) -> bool {
        let Some(node) = self.stores.get(&peer.store_id) else {
            return false;
        };
        match node.peers.get(&region.id) {
            Some(there) => there.id <= peer.id,
            None => {
                let overlaps = |there: &PeerNode| there.region.range.overlaps(&region.range);
                !node.tombstones.contains(&peer.id) && !node.peers.values().any(overlaps)
            }
        }
    }

    /// A store is asked for the vote of a peer that it does not have yet. It
    /// makes up an empty one, which votes once per term, unless another region
    /// is still where this one will be.
    pub(super) fn unborn_votes(&mut self, to: PeerAddress, from: Peer, message: &Message) {
        let (term, binding) = match message {
            Message::PreVote { term, .. } => (*term, false),
            Message::Vote { term, .. } => (*term, true),
            _ => return,
        };
        let asker = self
            .stores
            .get(&from.store_id)
            .and_then(|node| node.peers.get(&to.region));
        let Some(region) = asker.map(|peer| peer.region.clone()) else {
            return;
        };
        let Some(node) = self.stores.get_mut(&to.store) else {
            return;
        };
        let overlaps = |peer: &PeerNode| peer.region.range.overlaps(&region.range);
        if node.peers.values().any(overlaps) {
            return;
        }
        let voted = node.unborn.get(&to.peer).copied();
        let (own_term, vote) = voted.unwrap_or((0, PeerId(0)));
        let free = term > own_term || (term == own_term && vote == from.id);
        if binding && free {
            node.unborn.insert(to.peer, (term, from.id));
        }
        let myself = Peer {
            id: to.peer,
            store_id: to.store,
            ..Peer::default()
        };
        let granted = free;
        let reply = if binding {
            Message::VoteReply { term, granted }
        } else {
            Message::PreVoteReply {
                term,
                granted,
                own_term,
            }
        };
        self.send_as(myself, to.region, from, reply);
    }
}
