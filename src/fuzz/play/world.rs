//! A tiny cluster: what is true of stores and regions, and what the machine has
//! asked and nobody has answered yet.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Effect, RequestId};
use crate::range::{EndKey, Key, KeyRange};
use crate::region::{
    Claim, Peer, PeerId, ReadTarget, Region, RegionEpoch, RegionId, ScannedRegion, Store, StoreId,
    WaitTarget,
};
use crate::time::Timestamp;

/// One past the last position of a key; as an end it means 'unbounded'.
pub(super) const KEYS: u16 = 256;

/// Returns the keys from position `from` to position `to`.
pub fn range(from: u16, to: u16) -> KeyRange {
    let start = match u8::try_from(from).expect("a position of a key") {
        0 => Key::EMPTY,
        byte => Key::from(&[byte]),
    };
    let end = match u8::try_from(to) {
        Ok(byte) => EndKey::Bounded(Key::from(&[byte])),
        Err(_) => EndKey::Unbounded,
    };
    KeyRange::new(start, end).expect("not empty")
}

/// What the machine asked.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    List {
        request: RequestId,
    },
    Open {
        stream: RequestId,
        store: StoreId,
    },
    Lease {
        request: RequestId,
        stream: RequestId,
        store: StoreId,
        seconds: u64,
    },
    Claims {
        request: RequestId,
        store: StoreId,
        /// The claims that were told already.
        told: usize,
    },
    Wait {
        stream: RequestId,
        store: StoreId,
        target: WaitTarget,
    },
    Read {
        request: RequestId,
        store: StoreId,
        target: ReadTarget,
    },
    Scan {
        request: RequestId,
        range: KeyRange,
        limit: u32,
    },
    Finish {
        request: RequestId,
        stream: RequestId,
        store: StoreId,
    },
    /// Finish was answered, so the stream is about to end.
    End {
        stream: RequestId,
    },
}

impl Asked {
    pub fn stream(&self) -> Option<RequestId> {
        match self {
            Self::Open { stream, .. }
            | Self::Lease { stream, .. }
            | Self::Wait { stream, .. }
            | Self::Finish { stream, .. }
            | Self::End { stream } => Some(*stream),
            _ => None,
        }
    }
}

/// A region and who says what of it.
#[derive(Clone, Debug)]
pub struct RegionState {
    pub from: u16,
    pub to: u16,
    pub epoch: RegionEpoch,
    pub leader: StoreId,
    /// Stores that claim it although they do not lead it.
    pub also_claimed: BTreeSet<StoreId>,
    pub pending: bool,
    /// Whether nobody claims it, as between two leaders.
    pub hidden: bool,
    pub peers: BTreeSet<StoreId>,
}

/// A change of the cluster; the numbers pick what is there.
#[derive(Clone, Debug)]
pub enum Change {
    Split(u8),
    Merge(u8),
    ConfVer(u8),
    Lead(u8, u8),
    AlsoClaim(u8, u8),
    Pending(u8),
    Hidden(u8),
    /// PD forgets, or learns again, who leads.
    Leaderless,
    AddStore,
}

#[derive(Clone, Debug)]
pub struct World {
    /// Until when each store is leased.
    pub stores: BTreeMap<StoreId, Option<Timestamp>>,
    pub regions: BTreeMap<u64, RegionState>,
    next_region: u64,
    leaderless: bool,
    pub outstanding: Vec<Asked>,
    /// Answered, dropped, or of a closed stream: can still be answered late.
    pub old: Vec<Asked>,
    /// Streams that were opened and neither ended nor closed.
    pub streams: BTreeMap<RequestId, StoreId>,
}

fn pick<T>(items: &[T], which: u8) -> Option<&T> {
    items.get(usize::from(which) % items.len().max(1))
}

impl World {
    pub fn new(stores: u64, regions: u16) -> Self {
        let ids: BTreeSet<_> = (1..=stores).map(StoreId).collect();
        let width = KEYS / regions;
        let regions: BTreeMap<_, _> = (0..regions)
            .map(|index| {
                let last = index + 1 == regions;
                let state = RegionState {
                    from: index * width,
                    to: if last { KEYS } else { (index + 1) * width },
                    epoch: RegionEpoch {
                        conf_ver: 1,
                        version: 1,
                    },
                    leader: StoreId(u64::from(index) % stores + 1),
                    also_claimed: BTreeSet::new(),
                    pending: false,
                    hidden: false,
                    peers: ids.clone(),
                };
                (u64::from(index) + 1, state)
            })
            .collect();
        Self {
            stores: ids.into_iter().map(|id| (id, None)).collect(),
            next_region: regions.len() as u64 + 1,
            regions,
            leaderless: false,
            outstanding: Vec::new(),
            old: Vec::new(),
            streams: BTreeMap::new(),
        }
    }

    /// Notes what the machine asks.
    pub fn take(&mut self, effect: &Effect) {
        match effect {
            Effect::ListStores { request } => {
                self.outstanding.push(Asked::List { request: *request });
            }
            Effect::OpenStream { stream, store } => {
                self.streams.insert(*stream, store.id);
                self.outstanding.push(Asked::Open {
                    stream: *stream,
                    store: store.id,
                });
            }
            Effect::UpdateLease {
                request,
                stream,
                store_id,
                seconds,
            } => self.outstanding.push(Asked::Lease {
                request: *request,
                stream: *stream,
                store: *store_id,
                seconds: *seconds,
            }),
            Effect::ListClaims { request, store } => self.outstanding.push(Asked::Claims {
                request: *request,
                store: store.id,
                told: 0,
            }),
            Effect::WaitApply {
                stream,
                store_id,
                regions,
            } => {
                let asked = regions.iter().map(|target| Asked::Wait {
                    stream: *stream,
                    store: *store_id,
                    target: *target,
                });
                self.outstanding.extend(asked);
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                let asked = regions.iter().map(|target| Asked::Read {
                    request: *request,
                    store: store.id,
                    target: *target,
                });
                self.outstanding.extend(asked);
            }
            Effect::ScanRegions {
                request,
                range,
                limit,
            } => self.outstanding.push(Asked::Scan {
                request: *request,
                range: range.clone(),
                limit: *limit,
            }),
            Effect::Finish {
                request,
                stream,
                store_id,
            } => self.outstanding.push(Asked::Finish {
                request: *request,
                stream: *stream,
                store: *store_id,
            }),
            Effect::CloseStream { stream, .. } => self.forget_stream(*stream),
        }
    }

    /// Nothing on the stream is answered in time any more.
    pub fn forget_stream(&mut self, stream: RequestId) {
        self.streams.remove(&stream);
        let (gone, kept) = std::mem::take(&mut self.outstanding)
            .into_iter()
            .partition(|asked| asked.stream() == Some(stream));
        self.outstanding = kept;
        self.old.extend(gone);
    }

    /// Applies a change. What cannot be changed stays as it is.
    pub fn change(&mut self, change: &Change) {
        let ids: Vec<_> = self.regions.keys().copied().collect();
        let stores: Vec<_> = self.stores.keys().copied().collect();
        let region = |which: u8| pick(&ids, which).copied().unwrap_or_default();
        let store = |which: u8| pick(&stores, which).copied().unwrap_or_default();
        match change {
            Change::Split(which) => self.split(region(*which)),
            Change::Merge(which) => self.merge(region(*which)),
            Change::ConfVer(which) => {
                self.with(region(*which), |state| state.epoch.conf_ver += 1);
            }
            Change::Lead(which, to) => self.with(region(*which), |state| {
                state.leader = store(*to);
                if state.peers.insert(state.leader) {
                    state.epoch.conf_ver += 1;
                }
            }),
            Change::AlsoClaim(which, by) => self.with(region(*which), |state| {
                let by = store(*by);
                if state.peers.contains(&by) && !state.also_claimed.remove(&by) {
                    state.also_claimed.insert(by);
                }
            }),
            Change::Pending(which) => self.with(region(*which), |state| {
                state.pending = !state.pending;
            }),
            Change::Hidden(which) => self.with(region(*which), |state| {
                state.hidden = !state.hidden;
            }),
            Change::Leaderless => self.leaderless = !self.leaderless,
            Change::AddStore => {
                let id = StoreId(stores.len() as u64 + 1);
                self.stores.insert(id, None);
            }
        }
    }

    fn with(&mut self, id: u64, change: impl FnOnce(&mut RegionState)) {
        if let Some(state) = self.regions.get_mut(&id) {
            change(state);
        }
    }

    fn split(&mut self, id: u64) {
        let Some(state) = self.regions.get_mut(&id) else {
            return;
        };
        let middle = (state.from + state.to) / 2;
        if middle == state.from {
            return;
        }
        state.epoch.version += 1;
        let mut new = state.clone();
        state.to = middle;
        new.from = middle;
        self.regions.insert(self.next_region, new);
        self.next_region += 1;
    }

    fn merge(&mut self, id: u64) {
        let Some(source) = self.regions.get(&id).cloned() else {
            return;
        };
        let into = self
            .regions
            .values_mut()
            .find(|state| state.to == source.from);
        if let Some(state) = into {
            state.to = source.to;
            state.epoch.version = state.epoch.version.max(source.epoch.version) + 1;
            self.regions.remove(&id);
        }
    }

    /// Ends everything that keeps a hold away for ever.
    pub fn calm(&mut self) {
        self.leaderless = false;
        for state in self.regions.values_mut() {
            state.also_claimed.clear();
            state.pending = false;
            state.hidden = false;
        }
    }

    pub fn store_list(&self) -> Vec<Store> {
        self.stores
            .keys()
            .map(|id| Store {
                id: *id,
                address: format!("store-{id}:20160"),
                ..Store::default()
            })
            .collect()
    }

    fn region(&self, id: u64, state: &RegionState) -> Region {
        let peers = state.peers.iter().map(|store| Peer {
            id: PeerId(id * 100 + store.0),
            store_id: *store,
            ..Peer::default()
        });
        Region {
            id: RegionId(id),
            range: range(state.from, state.to),
            epoch: state.epoch,
            peers: peers.collect(),
        }
    }

    pub fn claims(&self, store: StoreId) -> Vec<Claim> {
        self.regions
            .iter()
            .filter(|(_, state)| {
                !state.hidden && (state.leader == store || state.also_claimed.contains(&store))
            })
            .map(|(id, state)| Claim {
                region: self.region(*id, state),
                has_pending_admin: state.pending,
            })
            .collect()
    }

    pub fn scan(&self, range: &KeyRange, limit: u32) -> Vec<ScannedRegion> {
        let mut found: Vec<_> = self
            .regions
            .iter()
            .map(|(id, state)| ScannedRegion {
                region: self.region(*id, state),
                leader: (!self.leaderless).then_some(state.leader),
            })
            .filter(|scanned| scanned.region.range.overlaps(range))
            .collect();
        found.sort_by(|a, b| a.region.range.cmp(&b.region.range));
        found.truncate(limit as usize);
        found
    }
}
