//! Our types as PD's and TiKV's messages.

use std::time::SystemTime;

use tonic::Status;

use crate::pb::{metapb, pdpb};
use crate::region::{
    Claim, Peer, PeerRole, Region, RegionEpoch, ScannedRegion, Store, StoreState, WaitTarget,
};
use crate::sim::model;

pub(super) fn store(store: Store, address: Option<String>) -> metapb::Store {
    metapb::Store {
        id: store.id.0,
        address: address.unwrap_or(store.address),
        state: match store.state {
            StoreState::Up => metapb::StoreState::Up,
            StoreState::Offline => metapb::StoreState::Offline,
            StoreState::Tombstone => metapb::StoreState::Tombstone,
        }
        .into(),
        labels: store
            .labels
            .into_iter()
            .map(|(key, value)| metapb::StoreLabel { key, value })
            .collect(),
        version: store.version,
        last_heartbeat: store.last_heartbeat_ns,
        ..metapb::Store::default()
    }
}

/// Moves the times at which stores were heard of last to where `now` is: the
/// model's clock starts at a moment of its own, and clients compare these times with
/// theirs. Whoever was heard of last was so just now.
pub(super) fn move_heartbeats(stores: &mut [Store], now: SystemTime) {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .and_then(|time| i64::try_from(time.as_nanos()).ok())
        .unwrap_or(0);
    let newest = stores.iter().map(|store| store.last_heartbeat_ns).max();
    let shift = now.saturating_sub(newest.unwrap_or(0));
    for store in stores.iter_mut().filter(|it| it.last_heartbeat_ns > 0) {
        store.last_heartbeat_ns = store.last_heartbeat_ns.saturating_add(shift);
    }
}

pub(super) fn epoch(epoch: RegionEpoch) -> metapb::RegionEpoch {
    metapb::RegionEpoch {
        conf_ver: epoch.conf_ver,
        version: epoch.version,
    }
}

pub(super) fn read_epoch(epoch: metapb::RegionEpoch) -> RegionEpoch {
    RegionEpoch {
        conf_ver: epoch.conf_ver,
        version: epoch.version,
    }
}

pub(super) fn peer(peer: &Peer) -> metapb::Peer {
    metapb::Peer {
        id: peer.id.0,
        store_id: peer.store_id.0,
        role: match peer.role {
            PeerRole::Voter => metapb::PeerRole::Voter,
            PeerRole::Learner => metapb::PeerRole::Learner,
            PeerRole::IncomingVoter => metapb::PeerRole::IncomingVoter,
            PeerRole::DemotingVoter => metapb::PeerRole::DemotingVoter,
        }
        .into(),
        is_witness: false,
    }
}

pub(super) fn region(region: &Region) -> metapb::Region {
    metapb::Region {
        id: region.id.0,
        start_key: region.range.start().as_bytes().to_vec(),
        end_key: region.range.end().as_wire().to_vec(),
        region_epoch: Some(epoch(region.epoch)),
        peers: region.peers.iter().map(peer).collect(),
    }
}

/// Returns what is echoed when nothing is known of what was sent.
pub(super) fn target(target: WaitTarget) -> metapb::Region {
    metapb::Region {
        id: target.region_id.0,
        region_epoch: Some(epoch(target.epoch)),
        ..metapb::Region::default()
    }
}

pub(super) fn read_target(region: &metapb::Region) -> WaitTarget {
    WaitTarget {
        region_id: crate::region::RegionId(region.id),
        epoch: read_epoch(region.region_epoch.unwrap_or_default()),
    }
}

pub(super) fn claim(claim: &Claim) -> crate::pb::backup::CheckAdminResponse {
    crate::pb::backup::CheckAdminResponse {
        error: None,
        region: Some(region(&claim.region)),
        has_pending_admin: claim.has_pending_admin,
    }
}

/// Returns the peer that leads, as PD knows it.
pub(super) fn leader(scanned: &ScannedRegion) -> Option<metapb::Peer> {
    let store = scanned.leader?;
    scanned.region.peer_on(store).map(peer)
}

pub(super) fn scanned(scanned: &ScannedRegion) -> pdpb::Region {
    pdpb::Region {
        region: Some(region(&scanned.region)),
        leader: leader(scanned),
        down_peers: Vec::new(),
        pending_peers: Vec::new(),
    }
}

pub(super) fn status(status: model::Status) -> Status {
    let code = tonic::Code::from_i32(status.code as i32);
    Status::new(code, status.message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn heartbeats_keep_their_distance_and_the_newest_is_now() {
        let store = |last_heartbeat_ns| Store {
            last_heartbeat_ns,
            ..Store::default()
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(5_000);
        // The last one is a tombstone, of which nothing is told.
        let mut stores = [1_000, 900, 0].map(|secs: i64| store(secs * 1_000_000_000));
        move_heartbeats(&mut stores, now);
        let moved = stores.map(|store| store.last_heartbeat_ns / 1_000_000_000);
        assert_eq!(moved, [5_000, 4_900, 0]);
        move_heartbeats(&mut [], now);
    }
}
