use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::calls::Call;
use super::event::{Event, Queue};
use super::history::History;
use super::net::Net;
use super::node::StoreNode;
use super::pd::Pd;
use super::peer::{Out, PeerNode};
use super::strike::Triggers;
use super::{Answer, CallId, Request, StreamReply};
use crate::progress::PhaseName;
use crate::region::{RegionId, Store, StoreId, StoreState};
use crate::sim::fault::{FaultKind, FaultPlan};
use crate::sim::layout::{Layout, LayoutRegion};
use crate::time::Timestamp;

/// A cluster: PD, the stores, and what is under way between them.
#[derive(Debug)]
pub struct Cluster {
    pub(super) now: Timestamp,
    pub(super) start: Timestamp,
    pub(super) rng: ChaCha8Rng,
    pub(super) plan: FaultPlan,
    pub(super) stores: BTreeMap<StoreId, StoreNode>,
    pub(super) net: Net,
    pub(super) pd: Pd,
    pub(super) calls: BTreeMap<CallId, Call>,
    pub(super) queue: Queue,
    pub(super) answers: VecDeque<(CallId, Answer)>,
    pub(super) triggers: Triggers,
    /// The next id of a region, a peer or a store.
    pub(super) next_id: u64,
    pub(super) next_command: u64,
    pub(super) next_call: u64,
    pub(super) history: History,
    pub(super) phase: PhaseName,
    /// How long a client is to be paused, one after the other.
    pub(super) pauses: VecDeque<Duration>,
    pub(super) out: Vec<Out>,
}

/// The unix time, in seconds, that the clocks of a model show at the start.
const EPOCH_SECONDS: u64 = 1_790_000_000;

impl Cluster {
    /// Starts the cluster that `layout` describes at rest at `start`. The same
    /// arguments and the same inputs always give the same answers.
    pub fn new(layout: &Layout, faults: FaultPlan, seed: u64, start: Timestamp) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x006d_6f64_656c);
        let mut highest = 0;
        let mut stores = BTreeMap::new();
        for info in &layout.stores {
            highest = highest.max(info.id.0);
            let offset = rng.random_range(1_000_000..100_000_000);
            stores.insert(info.id, StoreNode::new(info.clone(), offset));
        }
        let mut cluster = Self {
            now: start,
            start,
            rng,
            plan: faults,
            stores,
            net: Net::default(),
            pd: Pd::default(),
            calls: BTreeMap::new(),
            queue: Queue::default(),
            answers: VecDeque::new(),
            triggers: Triggers::default(),
            next_id: 1,
            next_command: 1,
            next_call: CallId::INTERNAL.0,
            history: History::default(),
            phase: PhaseName::Connect,
            pauses: VecDeque::new(),
            out: Vec::new(),
        };
        for entry in &layout.regions {
            let peers = entry.region.peers.iter().map(|peer| peer.id.0);
            highest = highest.max(entry.region.id.0).max(peers.max().unwrap_or(0));
            cluster.place(entry);
        }
        cluster.next_id = highest + 1;
        let refresh = cluster.plan.timing.pd_refresh;
        cluster.queue.push(start + refresh, Event::Refresh);
        cluster.schedule_strikes();
        cluster
    }

    /// Puts a region in place as it is after a long rest.
    fn place(&mut self, entry: &LayoutRegion) {
        let region = Arc::new(entry.region.clone());
        let (index, term) = (self.rng.random_range(6..60), self.rng.random_range(6..20));
        let leader = entry
            .leader
            .and_then(|store| region.peer_on(store))
            .copied();
        for peer in &region.peers {
            let voted = self.rng.random_ratio(7, 10);
            let Some(node) = self.stores.get_mut(&peer.store_id) else {
                continue;
            };
            let mut replica = PeerNode::new(*peer, Arc::clone(&region), (index, term), self.start);
            if let Some(leader) = leader {
                replica.leader = Some(leader);
                if voted && peer.role.is_voter() {
                    replica.vote = Some(leader.id);
                }
                if leader.id == peer.id {
                    replica.lead_at_rest();
                }
            }
            node.peers.insert(region.id, replica);
        }
        match leader {
            Some(leader) => self.pd.report(super::event::PdReport {
                region,
                leader,
                term,
            }),
            None => {
                self.pd.learn(Arc::clone(&region));
                let stores: Vec<StoreId> = region.peers.iter().map(|p| p.store_id).collect();
                for store in stores {
                    self.start_election_timer(store, region.id, 1);
                }
            }
        }
    }

    /// Takes in what a client asks.
    pub fn handle_request(&mut self, call: CallId, request: Request, now: Timestamp) {
        self.handle_timeout(now);
        if self.history.requests == 0 {
            self.phase_entered();
        }
        self.history.requests += 1;
        self.history.asked(call, &request, now);
        self.check_target(call, &request);
        self.take_in(call, request);
    }

    /// Lets time pass: carries out everything that is due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some((at, event)) = self.queue.pop_due(now) {
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(now);
    }

    /// Returns the next answer that reaches its client now.
    pub fn poll_answer(&mut self) -> Option<(CallId, Answer)> {
        let (call, answer) = self.answers.pop_front()?;
        // What a client has not read, since it is paused, it does not know.
        match &answer {
            Answer::End(status) if status.message == super::calls::ABORTED => {
                self.history.superseded(call);
            }
            Answer::Stream(StreamReply::LeaseUpdated {
                last_lease_is_valid,
            }) => {
                let now = self.now;
                self.history
                    .update_answered(call, *last_lease_is_valid, now);
            }
            _ => {}
        }
        Some((call, answer))
    }

    /// Returns the next instant at which [`Cluster::handle_timeout`] has
    /// something to do.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.queue.next_at()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::AtPd(call, request) => self.at_pd(call, request),
            Event::Report(report) => self.pd_hears(report),
            Event::Refresh => self.refresh_pd(),
            Event::AtStore(call) => self.at_store(call),
            Event::StreamInput(call, input) => self.stream_input(call, input),
            Event::StreamWork(call) => self.stream_work(call),
            Event::LateWait(call, entry, target) => self.late_wait(call, entry, target),
            Event::Emit(call, reply) => self.emit(call, reply),
            Event::Aborted(call) => self.stream_aborted(call),
            Event::Deliver(call, answer) => self.arrive(call, answer),
            Event::Raft { to, from, message } => self.raft_message(to, from, message),
            Event::Timer(address, timer) => self.peer_timer(address, timer),
            Event::Strike(strike) => self.strike(strike),
        }
    }

    /// Returns the stores that the cluster has now, as PD lists them.
    pub fn stores(&self) -> Vec<Store> {
        self.stores
            .values()
            .map(|node| self.describe(node))
            .collect()
    }

    fn describe(&self, node: &StoreNode) -> Store {
        let mut store = node.info.clone();
        if store.state != StoreState::Tombstone {
            let seen = if node.life == super::node::Life::Down {
                node.down_since
            } else {
                self.now
            };
            store.last_heartbeat_ns = unix_nanos(seen);
        }
        store
    }

    /// Sets the address under which PD lists a store.
    pub fn set_address(&mut self, store: StoreId, address: impl Into<String>) {
        if let Some(node) = self.stores.get_mut(&store) {
            node.info.address = address.into();
        }
    }

    /// Sets the API version of a store's storage.
    pub fn set_storage(&mut self, store: StoreId, mode: super::StorageMode) {
        if let Some(node) = self.stores.get_mut(&store) {
            node.storage = mode;
        }
    }

    /// Makes a store one with the partitioned engine, which has no such calls.
    pub fn set_partitioned(&mut self, store: StoreId) {
        if let Some(node) = self.stores.get_mut(&store) {
            node.engine_v2 = true;
        }
    }

    /// Says in which phase the run is that goes on against this cluster: faults
    /// that are aimed at it strike, and [`Cluster::strikes`] counts by phase. A
    /// cluster begins in `Connect`, with the first request.
    pub fn note_phase(&mut self, phase: PhaseName) {
        let first = self.history.requests == 0;
        self.phase = phase;
        if !first {
            self.phase_entered();
        }
    }

    /// Returns for how long whoever runs the client has to pause it now, if the
    /// plan wants that: nothing is read, sent or decided meanwhile.
    pub fn poll_pause(&mut self) -> Option<Duration> {
        self.pauses.pop_front()
    }

    /// Returns how often each fault struck, by the phase noted then.
    pub fn strikes(&self) -> &BTreeMap<(FaultKind, PhaseName), u64> {
        &self.history.strikes
    }

    /// Counts a fault that struck outside of the cluster.
    pub fn note_strike(&mut self, kind: FaultKind) {
        self.history.struck(kind, self.phase);
    }

    /// Returns how much clients have asked so far.
    pub fn requests(&self) -> u64 {
        self.history.requests
    }

    /// Returns the plan of its faults.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// Returns when the last thing happened.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Notes that the client's hold begins now, for the
    /// [oracle](crate::sim::oracle).
    pub fn note_hold(&mut self, now: Timestamp) {
        self.handle_timeout(now);
        let mut mark = self.history.hold_mark();
        mark.at = now;
        mark.voters = self.stores_with_voters();
        mark.unsettled = crate::sim::oracle::unsettled(self);
        self.history.hold = Some(mark);
    }

    /// Notes that the end of the hold is asked for now, before anything else
    /// is done about it.
    pub fn note_finish(&mut self, now: Timestamp) {
        self.handle_timeout(now);
        self.history.finish_asked.get_or_insert(now);
    }

    /// Notes that the client says now that its hold is lost.
    pub fn note_lost(&mut self, now: Timestamp) {
        self.handle_timeout(now);
        self.history.lost.get_or_insert(now);
    }

    /// Returns whether a store is gone for good.
    pub(in crate::sim) fn has_gone_store(&self) -> bool {
        self.stores.values().any(|node| node.gone)
    }

    pub(in crate::sim) fn history(&self) -> &History {
        &self.history
    }

    /// Returns all replicas of a region, each with its store.
    pub(in crate::sim) fn replicas(&self, region: RegionId) -> impl Iterator<Item = &PeerNode> {
        self.stores
            .values()
            .filter_map(move |node| node.peers.get(&region))
    }

    /// Returns the ids of the stores that hold a voter.
    pub(in crate::sim) fn stores_with_voters(&self) -> Vec<StoreId> {
        let votes = |node: &&StoreNode| {
            let mut peers = node.peers.values();
            peers.any(|peer| peer.own().is_some_and(|own| own.role.is_voter()))
        };
        self.stores
            .values()
            .filter(votes)
            .map(StoreNode::id)
            .collect()
    }

    /// Draws a delay of `base` or somewhat more.
    pub(super) fn jittered(&mut self, base: Duration) -> Duration {
        let base = base.as_micros() as u64;
        let most = base * u64::from(self.plan.timing.jitter_percent) / 100;
        Duration::from_micros(base + self.rng.random_range(0..=most))
    }

    pub(super) fn after(&mut self, delay: Duration, event: Event) {
        self.queue.push(self.now + delay, event);
    }

    pub(super) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

pub(super) fn unix_nanos(now: Timestamp) -> i64 {
    let micros = EPOCH_SECONDS * 1_000_000 + now.as_micros();
    i64::try_from(micros.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// Returns PD's timestamp: milliseconds in the high bits, a counter below.
pub(super) fn tso(now: Timestamp) -> u64 {
    (EPOCH_SECONDS * 1_000 + now.as_micros() / 1_000) << 18
}
