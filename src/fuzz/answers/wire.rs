//! What a sound PD or store would put on the wire.

use prost::Message;

use crate::pb::backup::{
    CheckAdminResponse, PrepareSnapshotBackupEventType, PrepareSnapshotBackupResponse,
};
use crate::pb::kvrpcpb::{BatchGetResponse, RawBatchGetResponse};
use crate::pb::{errorpb, metapb, pdpb};
use crate::region::{
    Claim, Peer, PeerRole, ReadAnswer, Region, RegionError, RegionErrorKind, ScannedRegion, Store,
    WaitAnswer,
};
use crate::tikv::raw::CLUSTER_ID;

fn header() -> Option<pdpb::ResponseHeader> {
    Some(pdpb::ResponseHeader {
        cluster_id: CLUSTER_ID,
        error: None,
    })
}

pub(super) fn stores(stores: &[Store]) -> Vec<u8> {
    let stores = stores.iter().map(|store| metapb::Store {
        id: store.id.0,
        address: store.address.clone(),
        version: store.version.clone(),
        ..metapb::Store::default()
    });
    pdpb::GetAllStoresResponse {
        header: header(),
        stores: stores.collect(),
    }
    .encode_to_vec()
}

fn peer(peer: &Peer) -> metapb::Peer {
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

fn region(region: &Region) -> metapb::Region {
    metapb::Region {
        id: region.id.0,
        start_key: region.range.start().as_bytes().to_vec(),
        end_key: region.range.end().as_wire().to_vec(),
        region_epoch: Some(metapb::RegionEpoch {
            conf_ver: region.epoch.conf_ver,
            version: region.epoch.version,
        }),
        peers: region.peers.iter().map(peer).collect(),
    }
}

pub(super) fn claim(claim: &Claim) -> Vec<u8> {
    CheckAdminResponse {
        error: None,
        region: Some(region(&claim.region)),
        has_pending_admin: claim.has_pending_admin,
    }
    .encode_to_vec()
}

/// A scan as newer servers write it, or with `old` as old ones do.
pub(super) fn scan(found: &[ScannedRegion], old: bool) -> Vec<u8> {
    let leader = |found: &ScannedRegion| {
        let store = found.leader?;
        found.region.peer_on(store).map(peer)
    };
    if old {
        pdpb::ScanRegionsResponse {
            header: header(),
            region_metas: found.iter().map(|it| region(&it.region)).collect(),
            leaders: found
                .iter()
                .map(|it| leader(it).unwrap_or_default())
                .collect(),
            regions: Vec::new(),
        }
        .encode_to_vec()
    } else {
        let regions = found.iter().map(|it| pdpb::Region {
            region: Some(region(&it.region)),
            leader: leader(it),
            ..pdpb::Region::default()
        });
        pdpb::BatchScanRegionsResponse {
            header: header(),
            regions: regions.collect(),
        }
        .encode_to_vec()
    }
}

pub(super) fn lease(last_lease_is_valid: bool) -> Vec<u8> {
    PrepareSnapshotBackupResponse {
        ty: PrepareSnapshotBackupEventType::UpdateLeaseResult.into(),
        last_lease_is_valid,
        ..PrepareSnapshotBackupResponse::default()
    }
    .encode_to_vec()
}

pub(super) fn wait(answer: &WaitAnswer) -> Vec<u8> {
    PrepareSnapshotBackupResponse {
        ty: PrepareSnapshotBackupEventType::WaitApplyDone.into(),
        region: answer.target.map(|target| metapb::Region {
            id: target.region_id.0,
            region_epoch: Some(metapb::RegionEpoch {
                conf_ver: target.epoch.conf_ver,
                version: target.epoch.version,
            }),
            ..metapb::Region::default()
        }),
        error: answer.result.as_ref().err().map(region_error),
        last_lease_is_valid: false,
    }
    .encode_to_vec()
}

pub(super) fn read(answer: &ReadAnswer, raw: bool) -> Vec<u8> {
    let region_error = answer.result.as_ref().err().map(region_error);
    if raw {
        RawBatchGetResponse {
            region_error,
            pairs: Vec::new(),
        }
        .encode_to_vec()
    } else {
        BatchGetResponse {
            region_error,
            ..BatchGetResponse::default()
        }
        .encode_to_vec()
    }
}

fn region_error(error: &RegionError) -> errorpb::Error {
    let mut wire = errorpb::Error {
        message: error.message.clone(),
        ..errorpb::Error::default()
    };
    match error.kind {
        RegionErrorKind::EpochNotMatch => wire.epoch_not_match = Some(Default::default()),
        RegionErrorKind::RegionNotFound => wire.region_not_found = Some(Default::default()),
        RegionErrorKind::NotLeader => wire.not_leader = Some(Default::default()),
        RegionErrorKind::StaleCommand => wire.stale_command = Some(Default::default()),
        RegionErrorKind::ServerIsBusy { backoff } => {
            wire.server_is_busy = Some(errorpb::ServerIsBusy {
                reason: String::new(),
                backoff_ms: u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX),
            });
        }
        RegionErrorKind::NotReady => wire.read_index_not_ready = Some(Default::default()),
        RegionErrorKind::WrongPeer => wire.store_not_match = Some(Default::default()),
        RegionErrorKind::Unserved => wire.disk_full = Some(Default::default()),
        RegionErrorKind::Unsupported => {
            wire.message = "Raftstore V2 doesn't support snapshot backup yet.".to_owned();
        }
        RegionErrorKind::Duplicated | RegionErrorKind::Other => {}
    }
    wire
}
