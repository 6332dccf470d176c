//! What has to hold in every run, whatever else a test looks at: checked at each
//! effect and after each input, from the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Config, Effect, Event, Machine, Proof, RequestId};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{RegionEpoch, RegionId, Store, StoreId};
use snapshot_prepare::time::Timestamp;

/// A stream that was asked for and not ended or closed.
#[derive(Debug, Default)]
struct Live {
    store: StoreId,
    opened: Option<Timestamp>,
    /// When the lease that was acknowledged last had been sent.
    acknowledged: Option<Timestamp>,
    waits: BTreeSet<RegionId>,
    /// What the store confirmed on this stream.
    confirmed: BTreeSet<(RegionId, RegionEpoch)>,
    finishing: bool,
}

#[derive(Debug)]
pub(crate) struct Watch {
    config: Config,
    stores: Vec<Store>,
    live: BTreeMap<RequestId, Live>,
    leases: BTreeMap<RequestId, (RequestId, Timestamp)>,
    numbers: BTreeSet<RequestId>,
    superseded: BTreeSet<StoreId>,
}

impl Watch {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            stores: Vec::new(),
            live: BTreeMap::new(),
            leases: BTreeMap::new(),
            numbers: BTreeSet::new(),
            superseded: BTreeSet::new(),
        }
    }

    /// Takes note of what the machine is about to hear.
    pub(crate) fn heard(&mut self, event: &Event, now: Timestamp) {
        match event {
            Event::StoresListed { stores, .. } => self.stores.clone_from(stores),
            Event::StreamOpened { stream } => {
                if let Some(live) = self.live.get_mut(stream) {
                    live.opened = Some(now);
                }
            }
            Event::StreamEnded { stream, reason } => {
                if let Some(live) = self.live.remove(stream)
                    && reason.kind == FailureKind::Superseded
                {
                    self.superseded.insert(live.store);
                }
            }
            Event::LeaseUpdated { request, .. } => {
                if let Some((stream, sent)) = self.leases.get(request)
                    && let Some(live) = self.live.get_mut(stream)
                {
                    live.acknowledged = live.acknowledged.max(Some(*sent));
                }
            }
            Event::WaitApplyDone { stream, answers } => {
                let Some(live) = self.live.get_mut(stream) else {
                    return;
                };
                for answer in answers {
                    let Some(target) = answer.target else {
                        // Nobody can say which wait it answers.
                        live.waits.clear();
                        continue;
                    };
                    live.waits.remove(&target.region_id);
                    if answer.result.is_ok() {
                        live.confirmed.insert((target.region_id, target.epoch));
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks a new effect.
    pub(crate) fn effect(&mut self, effect: &Effect, machine: &Machine, now: Timestamp) {
        match effect {
            Effect::ListStores { request } | Effect::ScanRegions { request, .. } => {
                self.fresh(*request);
            }
            Effect::OpenStream { stream, store } => {
                self.fresh(*stream);
                self.open(*stream, store, machine);
            }
            Effect::UpdateLease {
                request,
                stream,
                seconds,
                ..
            } => {
                self.fresh(*request);
                self.lease(*stream, *seconds, now);
                self.leases.insert(*request, (*stream, now));
            }
            Effect::ListClaims { request, store } => {
                self.fresh(*request);
                self.target(store);
            }
            Effect::WaitApply {
                stream, regions, ..
            } => {
                self.may_wait(now);
                for region in regions {
                    let live = self.live.get_mut(stream).expect("R6: a wait on no stream");
                    assert!(
                        live.waits.insert(region.region_id),
                        "R7: two waits in flight for region {} at store {}",
                        region.region_id,
                        live.store
                    );
                    assert!(
                        live.waits.len() <= self.config.window as usize,
                        "R7: more waits in flight than the window at store {}",
                        live.store
                    );
                }
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                self.fresh(*request);
                self.target(store);
                assert_eq!(
                    self.config.proof,
                    Proof::Read,
                    "R13: a read with proof by claims"
                );
                for region in regions {
                    assert!(
                        self.live.values().any(|live| live.store == store.id
                            && live.confirmed.contains(&(region.region_id, region.epoch))),
                        "R13: region {} is read at store {} without a confirmed wait there",
                        region.region_id,
                        store.id
                    );
                }
            }
            Effect::Finish {
                request, stream, ..
            } => {
                self.fresh(*request);
                let live = self.live.get_mut(stream).expect("R16: Finish on no stream");
                assert!(!live.finishing, "R16: a second Finish on a stream");
                live.finishing = true;
            }
            Effect::CloseStream { stream, .. } => {
                self.live.remove(stream);
            }
            _ => {}
        }
    }

    fn fresh(&mut self, number: RequestId) {
        assert!(self.numbers.insert(number), "number {number} is used twice");
    }

    fn target(&self, store: &Store) {
        assert!(
            !store.id.is_none() && store.takes_part(),
            "R17: store {} is no target",
            store.id
        );
    }

    fn open(&mut self, stream: RequestId, store: &Store, machine: &Machine) {
        self.target(store);
        assert!(
            !matches!(machine.phase(), PhaseName::Release | PhaseName::Closed),
            "R16: dialing in {}",
            machine.phase()
        );
        assert!(
            !self.superseded.contains(&store.id),
            "R5: store {} is dialed again after it was superseded",
            store.id
        );
        assert!(
            self.live.values().all(|live| live.store != store.id),
            "a second stream to store {}",
            store.id
        );
        let live = Live {
            store: store.id,
            ..Live::default()
        };
        self.live.insert(stream, live);
    }

    fn lease(&self, stream: RequestId, seconds: u64, now: Timestamp) {
        assert_eq!(Duration::from_secs(seconds), self.config.lease);
        let live = &self.live.get(&stream).expect("a lease on no stream");
        assert!(!live.finishing, "R16: a lease after Finish");
        for store in self.stores.iter().filter(|store| store.takes_part()) {
            let is_ready = self.live.values().any(|live| {
                live.store == store.id
                    && live.opened.is_some_and(|at| at + self.config.settle <= now)
            });
            assert!(
                is_ready,
                "R1: a lease leaves while store {} has no open stream",
                store.id
            );
        }
    }

    fn may_wait(&self, now: Timestamp) {
        for store in self.stores.iter().filter(|store| store.takes_part()) {
            let end = self.trusted_until(store.id);
            assert!(
                end.is_some(),
                "R2: a wait leaves before store {} acknowledged its first lease",
                store.id
            );
            assert!(
                end > Some(now),
                "R3: a wait leaves when the lease of store {} is over",
                store.id
            );
        }
    }

    /// Returns until when a store's lease can be trusted.
    fn trusted_until(&self, store: StoreId) -> Option<Timestamp> {
        self.live
            .values()
            .find(|live| live.store == store)
            .and_then(|live| live.acknowledged)
            .map(|sent| sent + self.config.lease.saturating_sub(self.config.margin))
    }

    /// Looks at the machine when all its effects are drained.
    pub(crate) fn after(&mut self, machine: &Machine, now: Timestamp) {
        match machine.poll_timeout() {
            Some(at) => assert!(at > now, "the machine spins on {:?}", machine.next_timer()),
            None => assert!(machine.outcome().is_some(), "no deadline, yet not over"),
        }
        if machine.outcome().is_some() {
            assert!(
                self.live.is_empty(),
                "R16: a stream is left open at the end"
            );
        }
        if machine.phase() == PhaseName::Hold {
            self.held(machine, now);
        }
    }

    fn held(&self, machine: &Machine, now: Timestamp) {
        let mut earliest = Timestamp::MAX;
        for store in self.stores.iter().filter(|store| store.takes_part()) {
            let until = self.trusted_until(store.id);
            assert!(
                until > Some(now),
                "R3: held, though the lease of store {} is over",
                store.id
            );
            earliest = earliest.min(until.expect("there is one"));
        }
        let told = machine.valid_until().expect("R3: held, but until when?");
        assert!(told <= earliest, "R3: trusted until {told}, not {earliest}");
    }
}
