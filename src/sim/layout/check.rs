use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Layout, LayoutError, LayoutRegion, RegionProblem};
use crate::range::EndKey;
use crate::region::{PeerId, Region, RegionId, Store, StoreId, StoreState};

/// The largest number that PD, which counts upwards, can have given.
const LARGEST: u64 = i64::MAX.cast_unsigned();

impl Layout {
    /// Checks that this is a cluster at rest: every key in exactly one region,
    /// regions in key order, region ids used once, peers on stores that are listed and
    /// serve, leaders among the voters.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), LayoutError> {
        let stores = index_stores(&self.stores)?;
        let Some(last) = self.regions.last() else {
            return Err(LayoutError::NoRegions);
        };
        for entry in &self.regions {
            check_region(entry)
                .and_then(|()| check_placement(&entry.region, &stores))
                .map_err(|problem| LayoutError::region(entry.region.id, problem))?;
        }
        check_ids(&self.regions)?;
        check_tiling(&self.regions)?;
        match last.region.range.end() {
            EndKey::Unbounded => Ok(()),
            EndKey::Bounded(_) => Err(LayoutError::Gap {
                after: Some(last.region.id),
                before: None,
            }),
        }
    }
}

fn index_stores(stores: &[Store]) -> Result<BTreeMap<StoreId, &Store>, LayoutError> {
    let mut index = BTreeMap::new();
    for store in stores {
        if store.id.is_none() {
            return Err(LayoutError::Store {
                store_id: store.id,
                problem: "the id is 0",
            });
        }
        if store.id.0 > LARGEST {
            return Err(LayoutError::Store {
                store_id: store.id,
                problem: "the id is 2^63 or more",
            });
        }
        if index.insert(store.id, store).is_some() {
            return Err(LayoutError::DuplicateStore { store_id: store.id });
        }
    }
    Ok(index)
}

/// Checks what can be told from the region alone.
fn check_region(entry: &LayoutRegion) -> Result<(), RegionProblem> {
    let region = &entry.region;
    if region.id == RegionId(0) {
        return Err(RegionProblem::ZeroId);
    }
    if region.peers.is_empty() {
        return Err(RegionProblem::NoPeers);
    }
    let of_peers = region.peers.iter().map(|peer| peer.id.0);
    let numbers = [region.id.0, region.epoch.conf_ver, region.epoch.version];
    if of_peers.chain(numbers).any(|number| number > LARGEST) {
        return Err(RegionProblem::NumberTooLarge);
    }
    for (at, peer) in region.peers.iter().enumerate() {
        if peer.id.0 == 0 || peer.store_id.is_none() {
            return Err(RegionProblem::ZeroPeer);
        }
        let earlier = region.peers.iter().take(at);
        if earlier.clone().any(|other| other.store_id == peer.store_id) {
            return Err(RegionProblem::TwoPeersOnStore(peer.store_id));
        }
    }
    if !region.peers.iter().any(|peer| peer.role.is_voter()) {
        return Err(RegionProblem::NoVoter);
    }
    let Some(leader) = entry.leader else {
        return Ok(());
    };
    match region.peer_on(leader) {
        None => Err(RegionProblem::ForeignLeader(leader)),
        Some(peer) if !peer.role.is_voter() => Err(RegionProblem::LearnerLeads(leader)),
        Some(_) => Ok(()),
    }
}

/// Checks that the region's peers are on stores that can hold them.
fn check_placement(
    region: &Region,
    stores: &BTreeMap<StoreId, &Store>,
) -> Result<(), RegionProblem> {
    for peer in &region.peers {
        let Some(store) = stores.get(&peer.store_id) else {
            return Err(RegionProblem::UnknownStore(peer.store_id));
        };
        if store.state == StoreState::Tombstone {
            return Err(RegionProblem::OnTombstone(peer.store_id));
        }
        if store.is_tiflash() && peer.role.is_voter() {
            return Err(RegionProblem::VoterOnTiflash(peer.store_id));
        }
    }
    Ok(())
}

fn check_ids(regions: &[LayoutRegion]) -> Result<(), LayoutError> {
    let mut region_ids: Vec<RegionId> = regions.iter().map(|entry| entry.region.id).collect();
    if let Some(region_id) = find_twice(&mut region_ids) {
        return Err(LayoutError::DuplicateRegion { region_id });
    }
    // Peer ids are compared within a region only: dumps in which ids were made
    // up anew have some twice, and nothing looks a peer up without its region.
    for LayoutRegion { region, .. } in regions {
        let mut peer_ids: Vec<PeerId> = region.peers.iter().map(|peer| peer.id).collect();
        if let Some(peer_id) = find_twice(&mut peer_ids) {
            return Err(LayoutError::DuplicatePeer {
                region_id: region.id,
                peer_id,
            });
        }
    }
    Ok(())
}

/// Returns something that is there twice. Sorts the list.
fn find_twice<T: Ord + Copy>(list: &mut [T]) -> Option<T> {
    list.sort_unstable();
    let twice = list.windows(2).find(|pair| pair.first() == pair.last())?;
    twice.first().copied()
}

/// Checks that each region starts where the one before it ends.
fn check_tiling(regions: &[LayoutRegion]) -> Result<(), LayoutError> {
    if let Some(first) = regions.first()
        && !first.region.range.start().is_empty()
    {
        return Err(LayoutError::Gap {
            after: None,
            before: Some(first.region.id),
        });
    }
    for pair in regions.windows(2) {
        let [left, right] = pair else { continue };
        match left.region.range.end().cmp_key(right.region.range.start()) {
            Ordering::Equal => {}
            Ordering::Greater => {
                return Err(LayoutError::Overlap {
                    region_id: left.region.id,
                    other: right.region.id,
                });
            }
            Ordering::Less => {
                return Err(LayoutError::Gap {
                    after: Some(left.region.id),
                    before: Some(right.region.id),
                });
            }
        }
    }
    Ok(())
}
