use crate::pb::errorpb;
use crate::sim::model::{ModelRegionError, RegionErrorDetail};

use super::convert;

/// Returns a region's error as stores send it. For
/// [`RegionErrorDetail::ApiVersionNotMatched`], which is none, only the text.
pub(super) fn to_wire(error: ModelRegionError) -> errorpb::Error {
    let mut wire = errorpb::Error {
        message: error.message,
        ..errorpb::Error::default()
    };
    match error.detail {
        RegionErrorDetail::None | RegionErrorDetail::ApiVersionNotMatched => {}
        RegionErrorDetail::NotLeader { region_id, leader } => {
            wire.not_leader = Some(errorpb::NotLeader {
                region_id: region_id.0,
                leader: leader.as_ref().map(convert::peer),
            });
        }
        RegionErrorDetail::RegionNotFound { region_id } => {
            wire.region_not_found = Some(errorpb::RegionNotFound {
                region_id: region_id.0,
            });
        }
        RegionErrorDetail::EpochNotMatch { current } => {
            wire.epoch_not_match = Some(errorpb::EpochNotMatch {
                current_regions: current.iter().map(convert::region).collect(),
            });
        }
        RegionErrorDetail::ServerIsBusy { reason, backoff_ms } => {
            wire.server_is_busy = Some(errorpb::ServerIsBusy { reason, backoff_ms });
        }
        RegionErrorDetail::StaleCommand => wire.stale_command = Some(errorpb::StaleCommand {}),
        RegionErrorDetail::StoreNotMatch { requested, actual } => {
            wire.store_not_match = Some(errorpb::StoreNotMatch {
                request_store_id: requested.0,
                actual_store_id: actual.0,
            });
        }
        RegionErrorDetail::MismatchPeerId { requested, actual } => {
            wire.mismatch_peer_id = Some(errorpb::MismatchPeerId {
                request_peer_id: requested.0,
                store_peer_id: actual.0,
            });
        }
        other => set_rare(&mut wire, other),
    }
    wire
}

/// Those that say that the region cannot serve for now.
fn set_rare(wire: &mut errorpb::Error, detail: RegionErrorDetail) {
    match detail {
        RegionErrorDetail::ReadIndexNotReady { reason, region_id } => {
            wire.read_index_not_ready = Some(errorpb::ReadIndexNotReady {
                reason,
                region_id: region_id.0,
            });
        }
        RegionErrorDetail::ProposalInMergingMode { region_id } => {
            wire.proposal_in_merging_mode = Some(errorpb::ProposalInMergingMode {
                region_id: region_id.0,
            });
        }
        RegionErrorDetail::DataIsNotReady { region_id, peer_id } => {
            wire.data_is_not_ready = Some(errorpb::DataIsNotReady {
                region_id: region_id.0,
                peer_id: peer_id.0,
                safe_ts: 0,
            });
        }
        RegionErrorDetail::RegionNotInitialized { region_id } => {
            wire.region_not_initialized = Some(errorpb::RegionNotInitialized {
                region_id: region_id.0,
            });
        }
        RegionErrorDetail::DiskFull { stores } => {
            wire.disk_full = Some(errorpb::DiskFull {
                store_id: stores.iter().map(|store| store.0).collect(),
                reason: "disk usage is full".to_owned(),
            });
        }
        RegionErrorDetail::RecoveryInProgress { region_id } => {
            wire.recovery_in_progress = Some(errorpb::RecoveryInProgress {
                region_id: region_id.0,
            });
        }
        // All others are set by the caller.
        _ => {}
    }
}
