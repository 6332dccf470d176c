use std::collections::BTreeMap;
use std::time::Duration;

use super::{Share, Standstill};
use crate::machine::{Effect, Event, Machine, Notice, RequestId};
use crate::progress::PhaseName;
use crate::region::{
    ReadAnswer, RegionError, RegionErrorKind, RegionId, StoreId, WaitAnswer, WaitTarget,
};
use crate::sim::model::Cluster;
use crate::time::Timestamp;

/// Books of who waited for what in the first attempt of a run.
#[derive(Debug, Default)]
pub(in crate::sim::world) struct Ledger {
    /// Nothing more is of interest: there was doubt.
    pub(super) closed: bool,
    is_held: bool,
    calls: BTreeMap<RequestId, Sent>,
    waits: BTreeMap<(RequestId, RegionId), Timestamp>,
    reads: BTreeMap<(RequestId, RegionId), Timestamp>,
    streams: BTreeMap<RequestId, StoreId>,
    stores: BTreeMap<StoreId, StoreTimes>,
    pub(super) regions: BTreeMap<RegionId, RegionTimes>,
    /// The regions that a busy store does not want to be asked for before.
    busy: BTreeMap<RegionId, Timestamp>,
    /// When each phase began first.
    phases: BTreeMap<PhaseName, Timestamp>,
    finish_asked: Option<Timestamp>,
    /// When each list of the stores was asked for; when the last one that was
    /// answered was, and how long it took.
    lists_asked: BTreeMap<RequestId, Timestamp>,
    store_list: (Timestamp, Duration),
    /// From the moment when regions could be asked for first until PD had a
    /// leader for the rest of the time.
    pd_back: Duration,
    /// From the same moment until each region was claimed by one store alone.
    claimed_once: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    store: StoreId,
    at: Timestamp,
    what: Call,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Lease,
    Listing,
    Read,
    Finish,
}

#[derive(Clone, Copy, Default, Debug)]
struct StoreTimes {
    lease: Option<Duration>,
    renewal: Duration,
    listing: Duration,
    finish: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RegionTimes {
    store: StoreId,
    wait: Duration,
    read: Duration,
    /// Before, its store did not want to be asked.
    not_before: Timestamp,
    /// From the moment when regions could be asked for first, until this one's
    /// leader had its epoch and was not busy, and until it could serve reads.
    may_ask: Duration,
    leads: Duration,
}

impl RegionTimes {
    /// The least time until it is proven.
    fn proven(&self) -> Duration {
        (self.may_ask + self.wait).max(self.leads) + self.read
    }
}

impl Ledger {
    /// Notes what the machine hands out.
    pub(in crate::sim::world) fn sent(&mut self, effect: &Effect, at: Timestamp) {
        if self.closed {
            return;
        }
        let mut call = |request: &RequestId, store, what| {
            self.calls.insert(*request, Sent { store, at, what });
        };
        match effect {
            Effect::OpenStream { stream, store } => {
                self.streams.insert(*stream, store.id);
            }
            Effect::UpdateLease {
                request, store_id, ..
            } => call(request, *store_id, Call::Lease),
            Effect::Finish {
                request, store_id, ..
            } => call(request, *store_id, Call::Finish),
            Effect::ListStores { request } => {
                self.lists_asked.insert(*request, at);
            }
            Effect::ListClaims { request, store } => call(request, store.id, Call::Listing),
            Effect::WaitApply {
                stream, regions, ..
            } => {
                let asked = regions.iter().map(|of| ((*stream, of.region_id), at));
                self.waits.extend(asked);
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                call(request, store.id, Call::Read);
                let asked = regions.iter().map(|of| ((*request, of.region_id), at));
                self.reads.extend(asked);
            }
            _ => {}
        }
    }

    /// Notes what happened.
    pub(in crate::sim::world) fn answered(&mut self, event: &Event, now: Timestamp) {
        if self.closed {
            return;
        }
        match event {
            Event::LeaseUpdated { request, .. }
            | Event::RegionsClaimed {
                request,
                done: true,
                ..
            } => self.call_answered(*request, now),
            Event::WaitApplyDone { stream, answers } if !self.is_held => {
                for answer in answers {
                    self.wait_answered(*stream, answer, now);
                }
            }
            Event::LeaderReadDone { request, answers } if !self.is_held => {
                for answer in answers {
                    self.read_answered(*request, answer, now);
                }
            }
            Event::StoresListed { request, .. } if !self.is_held => {
                if let Some(sent) = self.lists_asked.remove(request) {
                    self.store_list = (sent, now.saturating_duration_since(sent));
                }
            }
            Event::FinishRequested => self.finish_asked = Some(now),
            _ => {}
        }
    }

    fn wait_answered(&mut self, stream: RequestId, answer: &WaitAnswer, now: Timestamp) {
        let Some(WaitTarget { region_id, .. }) = answer.target else {
            return;
        };
        let sent = self.waits.remove(&(stream, region_id));
        let (Some(sent), Some(&store)) = (sent, self.streams.get(&stream)) else {
            return;
        };
        if let Err(error) = &answer.result {
            return self.refused(region_id, error, now);
        }
        let not_before = self.busy.get(&region_id).copied();
        let times = RegionTimes {
            store,
            wait: now.saturating_duration_since(sent),
            read: Duration::ZERO,
            not_before: not_before
                .filter(|until| *until <= sent)
                .unwrap_or_default(),
            may_ask: Duration::ZERO,
            leads: Duration::ZERO,
        };
        self.regions.insert(region_id, times);
    }

    fn read_answered(&mut self, request: RequestId, answer: &ReadAnswer, now: Timestamp) {
        let region_id = answer.region_id;
        let sent = self.reads.remove(&(request, region_id));
        if let Err(error) = &answer.result {
            self.refused(region_id, error, now);
        } else if let (Some(sent), Some(times)) = (sent, self.regions.get_mut(&region_id)) {
            times.read = now.saturating_duration_since(sent);
        }
    }

    fn refused(&mut self, region: RegionId, error: &RegionError, now: Timestamp) {
        if let RegionErrorKind::ServerIsBusy { backoff } = error.kind {
            self.busy.insert(region, now + backoff);
        }
    }

    fn call_answered(&mut self, request: RequestId, now: Timestamp) {
        let Some(Sent { store, at, what }) = self.calls.remove(&request) else {
            return;
        };
        let took = now.saturating_duration_since(at);
        let times = self.stores.entry(store).or_default();
        match what {
            Call::Lease if times.lease.is_none() => times.lease = Some(took),
            Call::Lease if !self.is_held => times.renewal = took,
            Call::Listing if !self.is_held => times.listing = took,
            Call::Finish => times.finish = took,
            Call::Lease | Call::Listing | Call::Read => {}
        }
    }

    /// Notes what the machine tells.
    pub(in crate::sim::world) fn told(&mut self, notice: &Notice, now: Timestamp) {
        match notice {
            Notice::PhaseEntered { phase, .. } => {
                self.phases.entry(*phase).or_insert(now);
            }
            Notice::AttemptFailed { .. } | Notice::HoldLost(_) => {
                *self = Self {
                    closed: true,
                    ..Self::default()
                };
            }
            _ => {}
        }
    }

    /// Notes that the hold begins. What the cluster is then tells since when each
    /// region could have been proven.
    pub(in crate::sim::world) fn held(&mut self, cluster: &Cluster) {
        self.is_held = true;
        let Some(&begin) = self.phases.get(&PhaseName::WaitApply) else {
            return;
        };
        // PD may have lost its leader once more since it listed the stores.
        let pd_back_at = cluster.pd_back_at().min(self.store_list.0);
        self.pd_back = pd_back_at.saturating_duration_since(begin);
        for (&region, times) in &mut self.regions {
            let formed = cluster.formed(region, times.store);
            let may_ask = formed.epoch_at.max(times.not_before);
            times.may_ask = may_ask.saturating_duration_since(begin);
            times.leads = formed.leads_at.saturating_duration_since(begin);
            let others = self.stores.keys().filter(|store| **store != times.store);
            let yielded = others.map(|store| cluster.formed(region, *store).yielded_at);
            let once = yielded.max().unwrap_or_default();
            let once = once.saturating_duration_since(begin);
            self.claimed_once = self.claimed_once.max(once);
        }
    }

    /// Returns the standstill of a run that is over; `None` for one that has no
    /// floor.
    pub(in crate::sim::world) fn standstill(
        &self,
        machine: &Machine,
        window: u32,
    ) -> Option<Standstill> {
        let prepared = machine.prepare_report()?;
        let suspended = machine.finish_report()?.suspended_time?;
        let finish_asked = self.finish_asked.filter(|_| !self.closed)?;
        let end = prepared.suspended_at + suspended;
        let begin = |phase| self.phases.get(&phase).copied();
        let marks = [
            (prepared.suspended_at, begin(PhaseName::WaitApply)?),
            (begin(PhaseName::WaitApply)?, begin(PhaseName::Verify)?),
            (begin(PhaseName::Verify)?, prepared.held_at),
            (finish_asked, end),
        ];
        let mut parts = [Share::default(); 4];
        let floors = self.floors(window);
        for ((share, (from, to)), floor) in parts.iter_mut().zip(marks).zip(floors) {
            share.took = to.saturating_duration_since(from);
            share.floor = floor;
        }
        Some(Standstill {
            took: parts.iter().map(|share| share.took).sum(),
            floor: floors.iter().sum(),
            parts,
        })
    }

    /// Returns the floors of the parts.
    pub(super) fn floors(&self, window: u32) -> [Duration; 4] {
        let asking = self.asking(window);
        let slowest = |of: &dyn Fn(&StoreTimes) -> Duration| {
            self.stores.values().map(of).max().unwrap_or_default()
        };
        let ask = asking.values().copied().max().unwrap_or_default();
        let ask_and_list = self
            .stores
            .iter()
            .map(|(store, times)| asking.get(store).copied().unwrap_or_default() + times.listing)
            .max()
            .unwrap_or_default();
        let both = ask_and_list
            .max(ask + slowest(&|times| times.renewal))
            .max(ask.max(self.pd_back) + self.store_list.1)
            .max(self.claimed_once);
        [
            slowest(&|times| times.lease.unwrap_or_default()),
            ask,
            both.saturating_sub(ask),
            slowest(&|times| times.finish),
        ]
    }

    /// Returns the least time in which each store's regions can be proven.
    fn asking(&self, window: u32) -> BTreeMap<StoreId, Duration> {
        let mut sums: BTreeMap<StoreId, (Duration, Duration, Duration)> = BTreeMap::new();
        for times in self.regions.values() {
            let (slowest, waits, reads) = sums.entry(times.store).or_default();
            *slowest = (*slowest).max(times.proven());
            *waits += times.wait;
            *reads += times.read;
        }
        let window = window.max(1);
        sums.into_iter()
            .map(|(store, (slowest, waits, reads))| {
                (store, slowest.max(waits / window).max(reads / window))
            })
            .collect()
    }
}
