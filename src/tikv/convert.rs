use std::collections::BTreeMap;

use crate::error::{Failure, FailureKind, without_controls};
use crate::pb::{metapb, pdpb};
use crate::range::KeyRange;
use crate::region::{
    Peer, PeerId, PeerRole, Region, RegionEpoch, RegionId, ScannedRegion, Store, StoreId,
    StoreState, WaitTarget,
};

/// Returns a region as `WaitApply` names it: by id and epoch alone.
pub(super) fn wait_target(target: &WaitTarget) -> metapb::Region {
    metapb::Region {
        id: target.region_id.0,
        region_epoch: Some(epoch_to_wire(target.epoch)),
        ..metapb::Region::default()
    }
}

pub(super) fn epoch_to_wire(epoch: RegionEpoch) -> metapb::RegionEpoch {
    metapb::RegionEpoch {
        conf_ver: epoch.conf_ver,
        version: epoch.version,
    }
}

pub(super) fn epoch(epoch: metapb::RegionEpoch) -> RegionEpoch {
    RegionEpoch {
        conf_ver: epoch.conf_ver,
        version: epoch.version,
    }
}

/// Reads a region. One without an id, an epoch or any key is malformed.
pub(super) fn region(region: metapb::Region) -> Result<Region, Failure> {
    let malformed = |what: &str| {
        Failure::new(
            FailureKind::Malformed,
            format!("region {} came {what}", region.id),
        )
    };
    if region.id == 0 {
        return Err(malformed("without an id"));
    }
    let Some(found_epoch) = region.region_epoch else {
        return Err(malformed("without an epoch"));
    };
    let Some(range) = KeyRange::from_wire(region.start_key, region.end_key) else {
        return Err(Failure::new(
            FailureKind::Malformed,
            format!(
                "region {} came with a key range that holds no key",
                region.id
            ),
        ));
    };
    Ok(Region {
        id: RegionId(region.id),
        range,
        epoch: epoch(found_epoch),
        peers: region.peers.into_iter().map(peer).collect(),
    })
}

fn peer(peer: metapb::Peer) -> Peer {
    use metapb::PeerRole as Wire;
    let role = match Wire::try_from(peer.role) {
        Ok(Wire::Learner) => PeerRole::Learner,
        Ok(Wire::IncomingVoter) => PeerRole::IncomingVoter,
        Ok(Wire::DemotingVoter) => PeerRole::DemotingVoter,
        // A role that is not known here may vote, so it is counted as if it did.
        Ok(Wire::Voter) | Err(_) => PeerRole::Voter,
    };
    Peer {
        id: PeerId(peer.id),
        store_id: StoreId(peer.store_id),
        role,
    }
}

/// Reads one region of a scan.
pub(super) fn scanned(
    found: Option<metapb::Region>,
    leader: Option<metapb::Peer>,
) -> Result<ScannedRegion, Failure> {
    let Some(found) = found else {
        return Err(Failure::new(
            FailureKind::Malformed,
            "a scan came with an entry that holds no region",
        ));
    };
    Ok(ScannedRegion {
        region: region(found)?,
        leader: leader
            .map(|leader| StoreId(leader.store_id))
            .filter(|store| !store.is_none()),
    })
}

/// Reads a scan in the form of newer servers.
pub(super) fn scan(regions: Vec<pdpb::Region>) -> Result<Vec<ScannedRegion>, Failure> {
    regions
        .into_iter()
        .map(|found| scanned(found.region, found.leader))
        .collect()
}

/// Reads a scan in the form of old servers: two lists side by side.
pub(super) fn old_scan(
    regions: Vec<metapb::Region>,
    leaders: Vec<metapb::Peer>,
) -> Result<Vec<ScannedRegion>, Failure> {
    let leaders = leaders.into_iter().map(Some).chain(std::iter::repeat(None));
    regions
        .into_iter()
        .zip(leaders)
        .map(|(found, leader)| scanned(Some(found), leader))
        .collect()
}

/// Reads a scan in either form.
pub(super) fn any_scan(answer: pdpb::ScanRegionsResponse) -> Result<Vec<ScannedRegion>, Failure> {
    if answer.regions.is_empty() {
        old_scan(answer.region_metas, answer.leaders)
    } else {
        scan(answer.regions)
    }
}

/// Leaves what was asked for, in order.
pub(super) fn tidy_scan(scan: &mut Vec<ScannedRegion>, range: &KeyRange) {
    // Servers so old that they do not know the end key read on beyond it.
    scan.retain(|found| found.region.range.overlaps(range));
    scan.sort_by(|a, b| a.region.range.start().cmp(b.region.range.start()));
}

/// Reads PD's timestamp.
pub(super) fn timestamp(answer: pdpb::GetMinTsResponse) -> Result<u64, Failure> {
    answer.timestamp.and_then(compose).ok_or_else(|| {
        Failure::new(
            FailureKind::Malformed,
            "PD's timestamp is absent or out of range",
        )
    })
}

/// Puts a timestamp into one number, `None` when it does not fit.
fn compose(timestamp: pdpb::Timestamp) -> Option<u64> {
    const LOGICAL_BITS: u32 = 18;
    let physical = u64::try_from(timestamp.physical).ok()?;
    let logical = u64::try_from(timestamp.logical).ok()?;
    let fits = physical.leading_zeros() >= LOGICAL_BITS && logical >> LOGICAL_BITS == 0;
    (fits && physical > 0).then_some((physical << LOGICAL_BITS) | logical)
}

/// Reads a store.
pub(super) fn store(store: metapb::Store) -> Store {
    use metapb::StoreState as Wire;
    let state = match Wire::try_from(store.state) {
        Ok(Wire::Offline) => StoreState::Offline,
        Ok(Wire::Tombstone) => StoreState::Tombstone,
        // A state that is not known here is no reason to leave the store out.
        Ok(Wire::Up) | Err(_) => StoreState::Up,
    };
    let labels: BTreeMap<_, _> = store
        .labels
        .into_iter()
        .map(|label| (label.key, label.value))
        .collect();
    Store {
        id: StoreId(store.id),
        // Shown as they are.
        address: without_controls(&store.address),
        state,
        version: without_controls(&store.version),
        labels,
        last_heartbeat_ns: store.last_heartbeat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(id: u64) -> metapb::Region {
        metapb::Region {
            id,
            start_key: b"a".to_vec(),
            end_key: b"b".to_vec(),
            region_epoch: Some(metapb::RegionEpoch {
                conf_ver: 1,
                version: 2,
            }),
            peers: vec![metapb::Peer {
                id: 3,
                store_id: 4,
                role: 77,
                is_witness: false,
            }],
        }
    }

    #[test]
    fn a_region_without_id_epoch_or_keys_is_malformed() {
        let mut no_epoch = wire(1);
        no_epoch.region_epoch = None;
        let mut reversed = wire(1);
        reversed.end_key = b"a".to_vec();
        for bad in [wire(0), no_epoch, reversed] {
            let failure = region(bad).expect_err("malformed");
            assert_eq!(failure.kind, FailureKind::Malformed);
        }
        let found = region(wire(1)).expect("sound");
        assert_eq!(found.peers[0].role, PeerRole::Voter);
        assert!(
            region(metapb::Region {
                end_key: Vec::new(),
                ..wire(1)
            })
            .is_ok_and(|found| found.range.end().as_key().is_none())
        );
    }

    #[test]
    fn a_timestamp_is_one_number() {
        let of = |physical, logical| {
            compose(pdpb::Timestamp {
                physical,
                logical,
                suffix_bits: 0,
            })
        };
        assert_eq!(of(1, 2), Some((1 << 18) | 2));
        assert_eq!(of(1_700_000_000_000, 0), Some(1_700_000_000_000 << 18));
        for (physical, logical) in [(0, 0), (-1, 0), (1, -1), (1, 1 << 18), (1 << 46, 0)] {
            assert_eq!(of(physical, logical), None, "{physical} {logical}");
        }
    }

    #[test]
    fn no_leader_has_two_forms() {
        let none = metapb::Peer::default();
        let some = metapb::Peer {
            store_id: 9,
            ..metapb::Peer::default()
        };
        let old = old_scan(vec![wire(1), wire(2), wire(3)], vec![some, none]).expect("sound");
        let leaders: Vec<_> = old.iter().map(|found| found.leader).collect();
        assert_eq!(leaders, [Some(StoreId(9)), None, None]);
        let new = scan(vec![pdpb::Region {
            region: Some(wire(1)),
            leader: Some(none),
            ..pdpb::Region::default()
        }]);
        assert_eq!(new.expect("sound")[0].leader, None);
        assert!(scan(vec![pdpb::Region::default()]).is_err());
    }
}
