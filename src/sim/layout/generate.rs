use std::collections::BTreeMap;

use rand::seq::{SliceRandom, index};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Layout, LayoutRegion, table_key};
use crate::range::{EndKey, Key, KeyRange};
use crate::region::{Peer, PeerId, PeerRole, Region, RegionEpoch, RegionId, Store, StoreId};

/// The version that made-up stores say they have.
pub(super) const STORE_VERSION: &str = "8.5.2";

impl Layout {
    /// Makes up a cluster at rest: `stores` TiKV stores and `regions` regions
    /// with `replicas` voters each, all drawn from `seed`.
    ///
    /// Stores have the ids 1, 2, 3 and so on. Keys look like those of TiDB's
    /// tables (meta data, small tables of one region, large ones split among
    /// their indexes and rows). Region ids have no order in key space, and
    /// leaders are spread evenly. There is at least one store, one region and
    /// one replica, and no more replicas than stores, whatever is asked for.
    ///
    /// ```
    /// use snapshot_prepare::sim::layout::Layout;
    ///
    /// let layout = Layout::generate(3, 100, 3, 7);
    /// assert_eq!(layout.regions.len(), 100);
    /// assert_eq!(layout, Layout::generate(3, 100, 3, 7));
    /// assert_eq!(layout.check(), Ok(()));
    /// ```
    pub fn generate(stores: u32, regions: u32, replicas: u32, seed: u64) -> Self {
        let stores = stores.max(1);
        let regions = regions.max(1);
        let replicas = replicas.clamp(1, stores);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ranges = split_points(regions, &mut rng);
        // The order in which the regions came into being.
        let mut births: Vec<u32> = (0..regions).collect();
        births.shuffle(&mut rng);
        Self {
            stores: (1..=u64::from(stores)).map(made_up_store).collect(),
            regions: ranges
                .into_iter()
                .zip(births)
                .map(|(range, birth)| place(range, birth, stores, replicas, &mut rng))
                .collect(),
        }
    }
}

fn made_up_store(id: u64) -> Store {
    Store {
        id: StoreId(id),
        address: made_up_address(StoreId(id)),
        version: STORE_VERSION.to_owned(),
        labels: BTreeMap::new(),
        ..Store::default()
    }
}

/// Returns an address that nobody can dial, for a store that has no real one.
pub(super) fn made_up_address(id: StoreId) -> String {
    format!("tikv-{id}.invalid:20160")
}

/// Cuts the key space into `regions` ranges in key order.
fn split_points(regions: u32, rng: &mut ChaCha8Rng) -> Vec<KeyRange> {
    let mut ranges = Vec::with_capacity(regions as usize);
    let mut keys = SplitKeys::new();
    let mut start = Key::EMPTY;
    for _ in 1..regions {
        let end = keys.next(rng);
        ranges.extend(KeyRange::new(start, EndKey::Bounded(end.clone())));
        start = end;
    }
    ranges.extend(KeyRange::new(start, EndKey::Unbounded));
    ranges
}

/// Split keys, each above the one before.
struct SplitKeys {
    meta_done: bool,
    table: u64,
    /// What is left to split of the present table.
    index_splits: u32,
    row_splits: u32,
    value: u64,
}

impl SplitKeys {
    fn new() -> Self {
        Self {
            meta_done: false,
            table: 0,
            index_splits: 0,
            row_splits: 0,
            value: 0,
        }
    }

    fn next(&mut self, rng: &mut ChaCha8Rng) -> Key {
        if !self.meta_done {
            self.meta_done = true;
            return table_key::meta();
        }
        if self.index_splits > 0 {
            self.index_splits -= 1;
            self.value += rng.random_range(1..1_000_000);
            if self.index_splits == 0 {
                let key = table_key::index(self.table, 1, self.value);
                self.value = 0;
                return key;
            }
            return table_key::index(self.table, 1, self.value);
        }
        if self.row_splits > 0 {
            self.row_splits -= 1;
            self.value += rng.random_range(1..1_000_000);
            return table_key::row(self.table, self.value);
        }
        self.table += rng.random_range(1..=4);
        self.value = 0;
        // Most tables are one region, a few are large.
        if rng.random_ratio(1, 6) {
            self.index_splits = rng.random_range(0..=10);
            self.row_splits = rng.random_range(1..=40);
        }
        table_key::table(self.table)
    }
}

/// Chooses the ids, the stores and the leader of the region that was the
/// `birth`-th to come into being.
fn place(
    range: KeyRange,
    birth: u32,
    stores: u32,
    replicas: u32,
    rng: &mut ChaCha8Rng,
) -> LayoutRegion {
    // PD hands out ids from one counter: first the stores took theirs, then
    // each region and its peers.
    let id = u64::from(stores) + 1 + u64::from(birth) * (u64::from(replicas) + 1);
    // Taking turns spreads the leaders evenly.
    let leader = birth % stores;
    let others = index::sample(rng, stores as usize - 1, replicas as usize - 1);
    let mut places: Vec<u64> = others
        .into_iter()
        // The other stores are those above zero when counted from the leader.
        .map(|other| (u64::from(leader) + 1 + other as u64) % u64::from(stores))
        .chain([u64::from(leader)])
        .collect();
    places.shuffle(rng);
    let peers = places
        .into_iter()
        .zip(1..)
        .map(|(place, nth)| Peer {
            id: PeerId(id + nth),
            store_id: StoreId(place + 1),
            role: PeerRole::Voter,
        })
        .collect();
    LayoutRegion {
        region: Region {
            id: RegionId(id),
            range,
            epoch: RegionEpoch {
                conf_ver: u64::from(replicas) * 2 - 1 + 2 * rng.random_range(0..20),
                version: rng.random_range(1..1_000),
            },
            peers,
        },
        leader: Some(StoreId(u64::from(leader) + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaders_per_store(layout: &Layout) -> BTreeMap<StoreId, usize> {
        let mut leaders = BTreeMap::new();
        for region in &layout.regions {
            if let Some(leader) = region.leader {
                *leaders.entry(leader).or_default() += 1;
            }
        }
        leaders
    }

    #[test]
    fn every_size_is_a_sound_cluster() {
        for (stores, regions, replicas) in [
            (1, 1, 1),
            (1, 50, 3),
            (3, 1, 3),
            (3, 2, 1),
            (4, 1000, 3),
            (30, 3000, 5),
            (0, 0, 0),
        ] {
            for seed in 0..5 {
                let layout = Layout::generate(stores, regions, replicas, seed);
                assert_eq!(layout.check(), Ok(()), "{stores} {regions} {seed}");
                assert_eq!(layout.stores.len(), stores.max(1) as usize);
                assert_eq!(layout.regions.len(), regions.max(1) as usize);
                let peers = replicas.clamp(1, stores.max(1)) as usize;
                assert!(layout.regions.iter().all(|r| r.region.peers.len() == peers));
            }
        }
    }

    #[test]
    fn leaders_are_spread_evenly() {
        let leaders = leaders_per_store(&Layout::generate(7, 1000, 3, 1));
        assert_eq!(leaders.len(), 7);
        assert!(leaders.values().all(|count| (142..=143).contains(count)));
    }

    #[test]
    fn another_seed_is_another_cluster() {
        assert_ne!(
            Layout::generate(3, 100, 3, 1),
            Layout::generate(3, 100, 3, 2)
        );
    }

    #[test]
    fn a_large_cluster_tiles() {
        let layout = Layout::generate(10, 100_000, 3, 9);
        assert_eq!(layout.check(), Ok(()));
    }
}
