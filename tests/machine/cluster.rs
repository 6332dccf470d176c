//! The scripted cluster behind the bench: what PD and the stores would say.
//!
//! It answers every question well and at once. Only what the rules need is in
//! it: leases that end, epochs that have to match, reads that only a leader
//! serves. There is no raft here; tests that need a leader without a quorum say
//! so by changing its answers.

use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::machine::{Effect, Event, RequestId};
use snapshot_prepare::range::{EndKey, Key, KeyRange};
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, ReadTarget, Region, RegionEpoch, RegionError,
    RegionErrorKind, RegionId, ScannedRegion, Store, StoreId, StoreState, WaitAnswer, WaitTarget,
};
use snapshot_prepare::time::Timestamp;

/// One thing that the machine asked: effects that speak of many regions are
/// taken apart, so that a test can treat each of them on its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Stores {
        request: RequestId,
    },
    Open {
        stream: RequestId,
        store: Store,
    },
    Lease {
        request: RequestId,
        stream: RequestId,
        store: StoreId,
        seconds: u64,
    },
    Claims {
        request: RequestId,
        store: Store,
    },
    Wait {
        stream: RequestId,
        store: StoreId,
        target: WaitTarget,
    },
    Read {
        request: RequestId,
        store: Store,
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
    Close {
        stream: RequestId,
        store: StoreId,
    },
}

impl Ask {
    /// Takes an effect apart.
    pub(crate) fn of(effect: &Effect) -> Vec<Self> {
        match effect.clone() {
            Effect::ListStores { request } => vec![Self::Stores { request }],
            Effect::OpenStream { stream, store } => vec![Self::Open { stream, store }],
            Effect::UpdateLease {
                request,
                stream,
                store_id: store,
                seconds,
            } => vec![Self::Lease {
                request,
                stream,
                store,
                seconds,
            }],
            Effect::ListClaims { request, store } => vec![Self::Claims { request, store }],
            Effect::WaitApply {
                stream,
                store_id: store,
                regions,
            } => regions
                .into_iter()
                .map(|target| Self::Wait {
                    stream,
                    store,
                    target,
                })
                .collect(),
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => regions
                .into_iter()
                .map(|target| Self::Read {
                    request,
                    store: store.clone(),
                    target,
                })
                .collect(),
            Effect::ScanRegions {
                request,
                range,
                limit,
            } => vec![Self::Scan {
                request,
                range,
                limit,
            }],
            Effect::Finish {
                request,
                stream,
                store_id: store,
            } => vec![Self::Finish {
                request,
                stream,
                store,
            }],
            Effect::CloseStream {
                stream,
                store_id: store,
            } => vec![Self::Close { stream, store }],
            other => panic!("an effect that the bench does not know: {}", other.name()),
        }
    }

    /// Returns the store that is asked; `None` for PD.
    pub(crate) fn store(&self) -> Option<StoreId> {
        match self {
            Self::Stores { .. } | Self::Scan { .. } => None,
            Self::Open { store, .. } | Self::Claims { store, .. } | Self::Read { store, .. } => {
                Some(store.id)
            }
            Self::Lease { store, .. }
            | Self::Wait { store, .. }
            | Self::Finish { store, .. }
            | Self::Close { store, .. } => Some(*store),
        }
    }

    /// Returns the region that is asked for, if it is one.
    pub(crate) fn region(&self) -> Option<RegionId> {
        match self {
            Self::Wait { target, .. } => Some(target.region_id),
            Self::Read { target, .. } => Some(target.region_id),
            _ => None,
        }
    }

    /// Returns the stream on which it is asked.
    pub(crate) fn stream(&self) -> Option<RequestId> {
        match self {
            Self::Open { stream, .. }
            | Self::Lease { stream, .. }
            | Self::Wait { stream, .. }
            | Self::Finish { stream, .. }
            | Self::Close { stream, .. } => Some(*stream),
            _ => None,
        }
    }

    pub(crate) fn is_stores(&self) -> bool {
        matches!(self, Self::Stores { .. })
    }
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
    pub(crate) fn is_lease(&self) -> bool {
        matches!(self, Self::Lease { .. })
    }
    pub(crate) fn is_claims(&self) -> bool {
        matches!(self, Self::Claims { .. })
    }
    pub(crate) fn is_wait(&self) -> bool {
        matches!(self, Self::Wait { .. })
    }
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
    pub(crate) fn is_scan(&self) -> bool {
        matches!(self, Self::Scan { .. })
    }
    pub(crate) fn is_finish(&self) -> bool {
        matches!(self, Self::Finish { .. })
    }
    pub(crate) fn is_close(&self) -> bool {
        matches!(self, Self::Close { .. })
    }

    /// Returns whether it goes to that store.
    pub(crate) fn at(&self, store: u64) -> bool {
        self.store() == Some(StoreId(store))
    }

    /// Returns whether it is about that region.
    pub(crate) fn about(&self, region: u64) -> bool {
        self.region() == Some(RegionId(region))
    }

    /// Returns the event that says that it failed: of the stream, or of the call.
    pub(crate) fn failed(&self, failure: Failure) -> Event {
        match self {
            Self::Stores { request }
            | Self::Claims { request, .. }
            | Self::Read { request, .. }
            | Self::Scan { request, .. } => Event::RequestFailed {
                request: *request,
                failure,
            },
            Self::Open { stream, .. }
            | Self::Lease { stream, .. }
            | Self::Wait { stream, .. }
            | Self::Finish { stream, .. }
            | Self::Close { stream, .. } => Event::StreamEnded {
                stream: *stream,
                reason: failure,
            },
        }
    }

    /// Returns the event that says whether the lease had been in force.
    pub(crate) fn valid(&self, valid: bool) -> Event {
        match self {
            Self::Lease { request, .. } | Self::Finish { request, .. } => Event::LeaseUpdated {
                request: *request,
                last_lease_is_valid: valid,
            },
            other => panic!("{other:?} is not answered by a lease"),
        }
    }

    /// Returns the event that answers a wait or a read.
    pub(crate) fn result(&self, result: Result<(), RegionError>) -> Event {
        match self {
            Self::Wait { stream, target, .. } => Event::WaitApplyDone {
                stream: *stream,
                answers: vec![WaitAnswer {
                    target: Some(*target),
                    result,
                }],
            },
            Self::Read {
                request, target, ..
            } => Event::LeaderReadDone {
                request: *request,
                answers: vec![ReadAnswer {
                    region_id: target.region_id,
                    epoch: target.epoch,
                    result,
                }],
            },
            other => panic!("{other:?} is not answered by a result"),
        }
    }

    /// Returns the event that answers a listing.
    pub(crate) fn claims(&self, claims: Vec<Claim>, done: bool) -> Event {
        match self {
            Self::Claims { request, .. } => Event::RegionsClaimed {
                request: *request,
                claims,
                done,
            },
            other => panic!("{other:?} is not answered by claims"),
        }
    }
}

/// A region as it really is.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) region: Region,
    pub(crate) leader: Option<StoreId>,
    pub(crate) pending: bool,
}

impl Truth {
    pub(crate) fn claim(&self) -> Claim {
        Claim {
            region: self.region.clone(),
            has_pending_admin: self.pending,
        }
    }

    pub(crate) fn scanned(&self) -> ScannedRegion {
        ScannedRegion {
            region: self.region.clone(),
            leader: self.leader,
        }
    }
}

/// PD and the stores.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) stores: Vec<Store>,
    pub(crate) regions: Vec<Truth>,
    /// What PD tells instead of the truth.
    pub(crate) pd: Option<Vec<ScannedRegion>>,
    /// When each store's lease ends.
    pub(crate) leases: BTreeMap<StoreId, Timestamp>,
}

pub(crate) fn store(id: u64) -> Store {
    Store {
        id: StoreId(id),
        address: format!("store-{id}:20160"),
        state: StoreState::Up,
        version: "8.5.2".to_owned(),
        ..Store::default()
    }
}

/// Returns the key before region `index` (from 0): the empty key for the first.
pub(crate) fn key(index: u64) -> Key {
    if index == 0 {
        Key::EMPTY
    } else {
        Key::new(format!("secret-{index:05}"))
    }
}

pub(crate) fn range(start: Key, end: Option<Key>) -> KeyRange {
    KeyRange::new(start, end.map_or(EndKey::Unbounded, EndKey::Bounded)).expect("not empty")
}

impl Cluster {
    /// Stores 1.. and regions 101.. that tile all keys, led in turn, with a
    /// voter on up to three stores.
    pub(crate) fn new(stores: u64, regions: u64) -> Self {
        let stores_list = (1..=stores).map(store).collect();
        let regions = (0..regions)
            .map(|index| {
                let id = 101 + index;
                let end = (index + 1 < regions).then(|| key(index + 1));
                let peers = (0..stores.min(3))
                    .map(|nth| peer(id, (index + nth) % stores + 1))
                    .collect();
                Truth {
                    region: Region {
                        id: RegionId(id),
                        range: range(key(index), end),
                        epoch: RegionEpoch {
                            conf_ver: 5,
                            version: 10,
                        },
                        peers,
                    },
                    leader: Some(StoreId(index % stores + 1)),
                    pending: false,
                }
            })
            .collect();
        Self {
            stores: stores_list,
            regions,
            pd: None,
            leases: BTreeMap::new(),
        }
    }

    pub(crate) fn region(&mut self, id: u64) -> &mut Truth {
        self.regions
            .iter_mut()
            .find(|truth| truth.region.id == RegionId(id))
            .expect("a known region")
    }

    pub(crate) fn store(&mut self, id: u64) -> &mut Store {
        self.stores
            .iter_mut()
            .find(|store| store.id == StoreId(id))
            .expect("a known store")
    }

    /// Moves the leader of a region.
    pub(crate) fn lead(&mut self, region: u64, store: u64) {
        self.region(region).leader = Some(StoreId(store));
    }

    /// Splits a region at `at`; the right part gets the new id.
    pub(crate) fn split(&mut self, region: u64, at: Key, new_id: u64) {
        let truth = self.region(region);
        let old = truth.region.range.clone();
        truth.region.epoch.version += 1;
        truth.region.range = range(old.start().clone(), Some(at.clone()));
        let mut right = truth.clone();
        right.region.id = RegionId(new_id);
        right.region.range = range(at, old.end().as_key().cloned());
        for peer in &mut right.region.peers {
            peer.id = PeerId(new_id * 10 + peer.store_id.0);
        }
        self.regions.push(right);
        self.regions
            .sort_by_key(|truth| truth.region.range.start().clone());
    }

    /// Merges a region into its left neighbor.
    pub(crate) fn merge_into_left(&mut self, region: u64) {
        let at = self
            .regions
            .iter()
            .position(|truth| truth.region.id == RegionId(region))
            .expect("a known region");
        let gone = self.regions.remove(at);
        let left = &mut self.regions[at - 1].region;
        left.epoch.version = left.epoch.version.max(gone.region.epoch.version) + 1;
        left.range = range(
            left.range.start().clone(),
            gone.region.range.end().as_key().cloned(),
        );
    }

    /// Returns what a store claims.
    pub(crate) fn claims_of(&self, store: StoreId) -> Vec<Claim> {
        self.regions
            .iter()
            .filter(|truth| truth.leader == Some(store))
            .map(Truth::claim)
            .collect()
    }

    /// Returns what PD says of a range.
    pub(crate) fn scan(&self, range: &KeyRange, limit: u32) -> Vec<ScannedRegion> {
        let all = self
            .pd
            .clone()
            .unwrap_or_else(|| self.regions.iter().map(Truth::scanned).collect());
        all.into_iter()
            .filter(|scanned| scanned.region.range.overlaps(range))
            .take(limit as usize)
            .collect()
    }

    fn wait(&self, target: WaitTarget) -> Result<(), RegionError> {
        let truth = self.find(target.region_id)?;
        if truth.region.epoch == target.epoch {
            Ok(())
        } else {
            Err(said(RegionErrorKind::EpochNotMatch))
        }
    }

    fn read(&self, store: StoreId, target: ReadTarget) -> Result<(), RegionError> {
        let truth = self.find(target.region_id)?;
        if truth.leader != Some(store) {
            return Err(said(RegionErrorKind::NotLeader));
        }
        if truth.region.peer_on(store).map(|peer| peer.id) != Some(target.peer_id) {
            return Err(said(RegionErrorKind::WrongPeer));
        }
        if truth.region.epoch.version != target.epoch.version {
            return Err(said(RegionErrorKind::EpochNotMatch));
        }
        Ok(())
    }

    fn find(&self, id: RegionId) -> Result<&Truth, RegionError> {
        self.regions
            .iter()
            .find(|truth| truth.region.id == id)
            .ok_or_else(|| said(RegionErrorKind::RegionNotFound))
    }

    fn is_leased(&self, store: StoreId, now: Timestamp) -> bool {
        self.leases.get(&store).is_some_and(|end| *end > now)
    }

    /// Answers well: events, each with the time until it comes.
    pub(crate) fn answer(&mut self, ask: &Ask, now: Timestamp) -> Vec<(Duration, Event)> {
        let events = match ask {
            Ask::Stores { request } => vec![Event::StoresListed {
                request: *request,
                stores: self.stores.clone(),
            }],
            Ask::Open { stream, .. } => vec![Event::StreamOpened { stream: *stream }],
            Ask::Lease { store, seconds, .. } => {
                let valid = self.is_leased(*store, now);
                let end = now + Duration::from_secs(*seconds);
                let present = self.leases.entry(*store).or_insert(end);
                *present = end.max(*present);
                vec![ask.valid(valid)]
            }
            Ask::Claims { store, .. } => vec![ask.claims(self.claims_of(store.id), true)],
            Ask::Wait { store, target, .. } => {
                if self.is_leased(*store, now) {
                    vec![ask.result(self.wait(*target))]
                } else {
                    vec![ask.failed(failure(FailureKind::LeaseLost))]
                }
            }
            Ask::Read { store, target, .. } => {
                vec![ask.result(self.read(store.id, *target))]
            }
            Ask::Scan {
                request,
                range,
                limit,
            } => vec![Event::RegionsScanned {
                request: *request,
                regions: self.scan(range, *limit),
            }],
            Ask::Finish { store, .. } => {
                let valid = self.is_leased(*store, now);
                self.leases.remove(store);
                vec![ask.valid(valid), ask.failed(failure(FailureKind::Finished))]
            }
            Ask::Close { .. } => vec![],
        };
        events
            .into_iter()
            .zip(0..)
            .map(|(event, nth)| (Duration::from_millis(nth), event))
            .collect()
    }
}

pub(crate) fn peer(region: u64, store: u64) -> Peer {
    Peer {
        id: PeerId(region * 10 + store),
        store_id: StoreId(store),
        role: PeerRole::Voter,
    }
}

pub(crate) fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, format!("the store said {kind:?}"))
}

pub(crate) fn said(kind: RegionErrorKind) -> RegionError {
    RegionError::new(kind, format!("the region said {kind:?}"))
}
