//! *No false hold*: when the hold begins, every store has been suspended without
//! a break since before the first wait, every command of the refused kind is
//! applied at its region's leader or can never be committed, and no region is
//! between the two steps of a merge.

use std::collections::BTreeSet;

use super::{Claimed, Violation};
use crate::region::StoreId;
use crate::sim::model::{Cluster, HoldMark, PeerNode, quorum};

const NAME: &str = "no false hold";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let Some(hold) = &cluster.history().hold else {
        return Vec::new();
    };
    let mut found: Vec<Violation> = hold
        .unsettled
        .iter()
        .map(|message| Violation::new(NAME, message.clone()))
        .collect();
    let Some(first_wait) = hold.first_wait else {
        found.push(Violation::new(NAME, "no wait was ever served"));
        return found;
    };
    for (&store, renewed) in &hold.renewed {
        let stretch = cluster.history().suspended_at(store, first_wait);
        if stretch.is_none_or(|stretch| stretch.end <= *renewed) {
            let message = format!(
                "store {store} was not suspended without a break from the first wait at {first_wait} to the renewal at {renewed} that let the hold begin"
            );
            found.push(Violation::new(NAME, message));
        }
    }
    found.extend(left_out(hold, claimed));
    found
}

/// Every store with a voter has to be held.
fn left_out(hold: &HoldMark, claimed: &Claimed) -> Vec<Violation> {
    let held = |store: &StoreId| {
        hold.renewed.contains_key(store)
            && (claimed.stores.is_empty() || claimed.stores.contains(store))
    };
    let missing = hold.voters.iter().filter(|store| !held(store));
    missing
        .map(|store| {
            let message = format!("store {store} holds voters and was not held");
            Violation::new(NAME, message)
        })
        .collect()
}

/// Returns what is not settled in the cluster now, as sentences.
pub(in crate::sim) fn unsettled(cluster: &Cluster) -> Vec<String> {
    let history = cluster.history();
    let mut found = Vec::new();
    let merged = history.merges.values().filter(|merge| merge.merged);
    let gone: BTreeSet<_> = merged.map(|merge| merge.source).collect();
    for (&id, command) in &history.commands {
        let what = || {
            format!(
                "the {} #{id} that store {} proposed for region {} at {}",
                command.name, command.store, command.region, command.proposed
            )
        };
        let merge = history.merges.get(&id);
        if merge.is_some_and(|merge| merge.resolved.is_some()) || gone.contains(&command.region) {
            // The source may have gone before its leader had applied it: the
            // target catches up on the source's log before it takes it in.
        } else if command.committed.is_some() {
            if command.applied_by_leader.is_none() {
                found.push(format!(
                    "{} is committed and not applied by a leader",
                    what()
                ));
            }
        } else if let Some(peer) = cluster
            .replicas(command.region)
            .find(|peer| holds(peer, id) && can_win(cluster, peer))
        {
            found.push(format!(
                "{} can still be committed: store {} has it and can be elected",
                what(),
                peer.store
            ));
        }
    }
    for merge in history.merges.values() {
        if merge.resolved.is_none() {
            found.push(format!(
                "region {} is between the two steps of a merge since {}",
                merge.source, merge.prepared
            ));
        }
    }
    found
}

fn holds(peer: &PeerNode, id: u64) -> bool {
    peer.log.iter().any(|entry| entry.id == id)
}

/// Returns whether a peer could be elected by some quorum of its region as it
/// knows it: by peers whose logs are no newer than its own.
fn can_win(cluster: &Cluster, peer: &PeerNode) -> bool {
    let votes = |id| {
        id == peer.id
            || cluster
                .replicas(peer.region.id)
                .any(|voter| voter.id == id && voter.last() <= peer.last())
    };
    peer.own().is_some_and(|own| own.role.is_voter()) && quorum(&peer.region.peers, votes)
}
