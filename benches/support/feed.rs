//! A cluster that answers a machine at once, without a model behind it: regions
//! are made up as they are asked for, so that it needs no memory of its own. At
//! rest nothing fails; otherwise every region of one store is refused once.

use std::collections::BTreeSet;
use std::time::Duration;

use snapshot_prepare::machine::{Config, Effect, Event, Machine, RequestId};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::{EndKey, Key, KeyRange};
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionError, RegionErrorKind,
    RegionId, ScannedRegion, Store, StoreId, WaitAnswer,
};
use snapshot_prepare::time::Timestamp;

use super::ranges::key;

/// Claims in one part of a listing.
const PART: u64 = 1024;
/// Answers that are handed in together.
const BATCH: usize = 64;

/// A cluster whose regions are led by the stores in turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) stores: u64,
    pub(crate) regions: u64,
}

impl Cluster {
    pub(crate) fn stores(self) -> Vec<Store> {
        (1..=self.stores).map(|id| self.store(id)).collect()
    }

    /// Returns the claims of a store.
    pub(crate) fn claims(self, store: StoreId) -> Vec<Claim> {
        self.led(store).map(|at| self.claim(at)).collect()
    }

    /// Returns the numbers of the regions that a store leads.
    fn led(self, store: StoreId) -> impl Iterator<Item = u64> {
        (store.0 - 1..self.regions).step_by(self.stores as usize)
    }

    fn store(self, id: u64) -> Store {
        Store {
            id: StoreId(id),
            address: format!("10.0.0.{id}:20160"),
            version: "8.5.0".to_owned(),
            ..Store::default()
        }
    }

    /// Returns the regions that overlap `range`, at most `limit`.
    fn scan(self, range: &KeyRange, limit: usize) -> Vec<ScannedRegion> {
        let (mut low, mut high) = (0, self.regions - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if key(middle) <= *range.start() {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        (low..self.regions)
            .map(|at| ScannedRegion {
                region: self.claim(at).region,
                leader: Some(StoreId(1 + at % self.stores)),
            })
            .take_while(|scanned| scanned.region.range.overlaps(range))
            .take(limit)
            .collect()
    }

    fn claim(self, at: u64) -> Claim {
        let start = if at == 0 { Key::EMPTY } else { key(at) };
        let end = match at + 1 == self.regions {
            true => EndKey::Unbounded,
            false => EndKey::Bounded(key(at + 1)),
        };
        let leader = at % self.stores;
        let peers = (0..3.min(self.stores))
            .map(|next| Peer {
                id: PeerId(1_000_000_000 + at * 3 + next),
                store_id: StoreId(1 + (leader + next) % self.stores),
                role: PeerRole::Voter,
            })
            .collect();
        Claim {
            region: Region {
                id: RegionId(1000 + at),
                range: KeyRange::new(start, end).expect("the keys ascend"),
                epoch: RegionEpoch {
                    conf_ver: 5,
                    version: 60_000,
                },
                peers,
            },
            has_pending_admin: false,
        }
    }
}

/// Drives a machine until it holds. Panics if it does not.
pub(crate) fn hold(cluster: Cluster) -> Machine {
    drive(cluster, None)
}

/// The same, while one store refuses every region once.
pub(crate) fn hold_though_refused(cluster: Cluster, by: StoreId) -> Machine {
    drive(cluster, Some(by))
}

fn drive(cluster: Cluster, refusing: Option<StoreId>) -> Machine {
    let config = Config {
        prepare_timeout: Duration::from_secs(3600),
        ..Config::default()
    };
    let mut feed = Feed {
        cluster,
        now: Timestamp::from_micros(1_000_000),
        machine: Machine::new(config, Timestamp::from_micros(1_000_000)).expect("a sound one"),
        refusing,
        refused: BTreeSet::new(),
    };
    while feed.machine.phase() != PhaseName::Hold {
        match feed.machine.poll_effect() {
            Some(effect) => feed.carry_out(effect),
            None => {
                let at = feed.machine.poll_timeout().expect("it goes on");
                feed.now = feed.now.max(at);
                feed.machine.handle_timeout(feed.now);
            }
        }
        assert!(
            feed.machine.outcome().is_none(),
            "{:?}",
            feed.machine.outcome()
        );
    }
    feed.machine
}

struct Feed {
    cluster: Cluster,
    now: Timestamp,
    machine: Machine,
    /// The store that refuses every region once, and those it has refused.
    refusing: Option<StoreId>,
    refused: BTreeSet<RegionId>,
}

impl Feed {
    fn give(&mut self, event: Event) {
        self.now = self.now + Duration::from_micros(1);
        self.machine.handle_event(event, self.now);
        while self.machine.poll_notice().is_some() {}
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::ListStores { request } => {
                let stores = self.cluster.stores();
                self.give(Event::StoresListed { request, stores });
            }
            Effect::OpenStream { stream, .. } => self.give(Event::StreamOpened { stream }),
            Effect::UpdateLease { request, .. } => self.give(Event::LeaseUpdated {
                request,
                last_lease_is_valid: self.machine.phase() != PhaseName::Suspend,
            }),
            Effect::ListClaims { request, store } => self.list(request, store.id),
            Effect::WaitApply {
                stream,
                store_id,
                regions,
            } => {
                for part in regions.chunks(BATCH) {
                    let answers = part.iter().map(|target| WaitAnswer {
                        target: Some(*target),
                        result: self.judge(store_id, target.region_id),
                    });
                    let answers = answers.collect();
                    self.give(Event::WaitApplyDone { stream, answers });
                }
            }
            Effect::LeaderRead {
                request, regions, ..
            } => {
                for part in regions.chunks(BATCH) {
                    let answers = part.iter().map(|target| ReadAnswer {
                        region_id: target.region_id,
                        epoch: target.epoch,
                        result: Ok(()),
                    });
                    let answers = answers.collect();
                    self.give(Event::LeaderReadDone { request, answers });
                }
            }
            Effect::ScanRegions {
                request,
                range,
                limit,
            } if self.refusing.is_some() => {
                let regions = self.cluster.scan(&range, limit as usize);
                self.give(Event::RegionsScanned { request, regions });
            }
            other => panic!("nothing calls for {}", other.name()),
        }
    }

    fn judge(&mut self, store: StoreId, region: RegionId) -> Result<(), RegionError> {
        if self.refusing == Some(store) && self.refused.insert(region) {
            return Err(RegionError::new(RegionErrorKind::NotLeader, "not leader"));
        }
        Ok(())
    }

    fn list(&mut self, request: RequestId, store: StoreId) {
        let mut led = self.cluster.led(store).peekable();
        loop {
            let part = led.by_ref().take(PART as usize);
            let claims: Vec<Claim> = part.map(|at| self.cluster.claim(at)).collect();
            let done = led.peek().is_none();
            self.give(Event::RegionsClaimed {
                request,
                claims,
                done,
            });
            if done {
                return;
            }
        }
    }
}
