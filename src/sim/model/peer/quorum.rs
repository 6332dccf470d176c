use crate::region::{Peer, PeerId, PeerRole};

/// Returns whether those for whom `yes` holds are a quorum of `peers`: a
/// majority of the voters, in a joint configuration of both halves.
pub(in crate::sim) fn quorum(peers: &[Peer], yes: impl Fn(PeerId) -> bool) -> bool {
    let majority = |half: PeerRole| {
        let voters = peers
            .iter()
            .filter(|peer| peer.role == PeerRole::Voter || peer.role == half);
        let (mut all, mut in_favor) = (0, 0);
        for peer in voters {
            all += 1;
            in_favor += usize::from(yes(peer.id));
        }
        in_favor > all / 2
    };
    majority(PeerRole::IncomingVoter) && majority(PeerRole::DemotingVoter)
}

/// Returns the largest of `values` that a quorum has reached.
pub(super) fn reached<T: Ord + Copy>(peers: &[Peer], value: impl Fn(PeerId) -> T) -> Option<T> {
    peers
        .iter()
        .map(|peer| value(peer.id))
        .filter(|&least| quorum(peers, |id| value(id) >= least))
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::StoreId;

    fn peers(roles: &[PeerRole]) -> Vec<Peer> {
        (1..)
            .zip(roles)
            .map(|(id, &role)| Peer {
                id: PeerId(id),
                store_id: StoreId(id),
                role,
            })
            .collect()
    }

    #[test]
    fn both_halves_of_a_joint_configuration_are_needed() {
        use PeerRole::{DemotingVoter, IncomingVoter, Learner, Voter};
        let joint = peers(&[Voter, Voter, DemotingVoter, IncomingVoter, Learner]);
        let of = |ids: &[u64]| quorum(&joint, |id| ids.contains(&id.0));
        assert!(of(&[1, 2]));
        assert!(!of(&[1, 3]));
        assert!(!of(&[1, 4]));
        assert!(of(&[1, 3, 4]));
        assert!(!of(&[1, 5]));
    }

    #[test]
    fn reached_is_what_a_majority_has() {
        let peers = peers(&[PeerRole::Voter; 3]);
        assert_eq!(reached(&peers, |id| id.0 * 10), Some(20));
    }
}
