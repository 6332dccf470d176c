//! Our types as PD's and TiKV's messages.

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
