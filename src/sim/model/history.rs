use std::collections::{BTreeMap, BTreeSet};

use super::{CallId, Request};
use crate::cluster::StreamRequest;
use crate::progress::PhaseName;
use crate::region::{RegionEpoch, RegionId, StoreId};
use crate::sim::fault::FaultKind;
use crate::time::Timestamp;

/// What happened in the cluster, as the oracle needs it.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct History {
    /// Every proposal of a kind that a lease refuses, by its number.
    pub(in crate::sim) commands: BTreeMap<u64, CommandRecord>,
    /// Every merge of which the first step was applied somewhere, by the number
    /// of its prepare merge.
    pub(in crate::sim) merges: BTreeMap<u64, MergeRecord>,
    /// When each store was suspended: intervals without a break, the end open.
    pub(in crate::sim) leases: BTreeMap<StoreId, Vec<Interval>>,
    /// What was served on each prepare stream of a client.
    pub(in crate::sim) streams: BTreeMap<CallId, StreamRecord>,
    /// How often each fault struck, by the phase of the run.
    pub(in crate::sim) strikes: BTreeMap<(FaultKind, PhaseName), u64>,
    /// Calls to stores that must not be called, as sentences.
    pub(in crate::sim) forbidden: Vec<String>,
    /// The stores of which a client has heard that somebody took its stream.
    pub(in crate::sim) superseded: BTreeSet<StoreId>,
    /// Everything that clients asked.
    pub(in crate::sim) requests: u64,
    /// When a peer last came to what it is now, of those that ever changed.
    pub(in crate::sim) forms: BTreeMap<(RegionId, StoreId), Formed>,
    /// What of it makes work.
    pub(in crate::sim) work: Work,
    /// When the first and the last request came.
    pub(in crate::sim) active: Option<Interval>,
    /// When faults stopped.
    pub(in crate::sim) stopped: Option<Timestamp>,
    /// The hold, once one was noted.
    pub(in crate::sim) hold: Option<HoldMark>,
    /// When the end of the hold was asked for.
    pub(in crate::sim) finish_asked: Option<Timestamp>,
    /// When the client said that the hold is lost.
    pub(in crate::sim) lost: Option<Timestamp>,
}

/// How often clients asked for what makes work.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Work {
    /// Listings, by store.
    pub(in crate::sim) listings: BTreeMap<StoreId, u64>,
    /// Streams, by store.
    pub(in crate::sim) streams: BTreeMap<StoreId, u64>,
    /// Waits, by region.
    pub(in crate::sim) waits: BTreeMap<RegionId, u64>,
    /// Reads, by region.
    pub(in crate::sim) reads: BTreeMap<RegionId, u64>,
    /// Lists of the stores.
    pub(in crate::sim) store_lists: u64,
    /// Pages of PD's scan.
    pub(in crate::sim) scans: u64,
}

/// What was true when a client said that it holds.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct HoldMark {
    /// When it was said.
    pub(in crate::sim) at: Timestamp,
    /// The stream of each store that is held.
    pub(in crate::sim) streams: BTreeMap<StoreId, CallId>,
    /// When each store served the last renewal of which the client has the
    /// answer.
    pub(in crate::sim) renewed: BTreeMap<StoreId, Timestamp>,
    /// When the first wait was served on one of these streams.
    pub(in crate::sim) first_wait: Option<Timestamp>,
    /// The stores that held voters.
    pub(in crate::sim) voters: Vec<StoreId>,
    /// What was not settled.
    pub(in crate::sim) unsettled: Vec<String>,
}

#[derive(Clone, Debug)]
pub(in crate::sim) struct CommandRecord {
    pub(in crate::sim) name: &'static str,
    pub(in crate::sim) region: RegionId,
    pub(in crate::sim) store: StoreId,
    pub(in crate::sim) proposed: Timestamp,
    pub(in crate::sim) committed: Option<Timestamp>,
    /// When a leader had applied it first.
    pub(in crate::sim) applied_by_leader: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct MergeRecord {
    pub(in crate::sim) source: RegionId,
    pub(in crate::sim) prepared: Timestamp,
    pub(in crate::sim) resolved: Option<Timestamp>,
    /// Whether it was committed, so that the source is gone for good.
    pub(in crate::sim) merged: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sim) struct Interval {
    pub(in crate::sim) start: Timestamp,
    pub(in crate::sim) end: Timestamp,
}

/// What a client can make of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sim) struct Form {
    /// The epoch as far as it has applied.
    pub(in crate::sim) epoch: RegionEpoch,
    /// The term in which it leads and has committed something; `None` when it
    /// serves no reads.
    pub(in crate::sim) leads_in: Option<u64>,
    /// Whether it takes itself for the leader.
    pub(in crate::sim) claims: bool,
}

/// Since when a peer has its epoch, since when it can serve reads, and since when
/// it claims to lead no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::sim) struct Formed {
    pub(in crate::sim) epoch_at: Timestamp,
    pub(in crate::sim) leads_at: Timestamp,
    pub(in crate::sim) yielded_at: Timestamp,
}

/// A renewal as the store served it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Served {
    pub(in crate::sim) at: Timestamp,
    pub(in crate::sim) seconds: u64,
}

#[derive(Clone, Debug)]
pub(in crate::sim) struct StreamRecord {
    pub(in crate::sim) store: StoreId,
    pub(in crate::sim) updates: Vec<Served>,
    /// When the client sent each renewal, also those that are not served.
    pub(in crate::sim) sent: Vec<Timestamp>,
    /// When the answer to each renewal reached the client, and what it said.
    pub(in crate::sim) answers: Vec<(Timestamp, bool)>,
    /// When the client sent Finish.
    pub(in crate::sim) finish_sent: Option<Timestamp>,
    /// When the first wait was taken in.
    pub(in crate::sim) first_wait: Option<Timestamp>,
    pub(in crate::sim) finish: Option<(Timestamp, bool)>,
    /// Regions asked for and not answered.
    pub(in crate::sim) in_flight: BTreeMap<RegionId, u32>,
    pub(in crate::sim) waiting: u64,
    /// The most that were in flight at once.
    pub(in crate::sim) most_waiting: u64,
    /// A region that was asked for while an earlier wait for it was unanswered.
    pub(in crate::sim) asked_twice: Option<RegionId>,
}

impl StreamRecord {
    pub(super) fn new(store: StoreId) -> Self {
        Self {
            store,
            updates: Vec::new(),
            sent: Vec::new(),
            answers: Vec::new(),
            finish_sent: None,
            first_wait: None,
            finish: None,
            in_flight: BTreeMap::new(),
            waiting: 0,
            most_waiting: 0,
            asked_twice: None,
        }
    }
}

impl History {
    pub(super) fn proposed(&mut self, id: u64, record: CommandRecord) {
        self.commands.insert(id, record);
    }

    pub(super) fn committed(&mut self, id: u64, now: Timestamp) {
        if let Some(record) = self.commands.get_mut(&id) {
            record.committed.get_or_insert(now);
        }
    }

    pub(super) fn applied_by_leader(&mut self, id: u64, now: Timestamp) {
        if let Some(record) = self.commands.get_mut(&id) {
            record.applied_by_leader.get_or_insert(now);
        }
    }

    pub(super) fn merge_prepared(&mut self, id: u64, source: RegionId, now: Timestamp) {
        self.merges.entry(id).or_insert(MergeRecord {
            source,
            prepared: now,
            resolved: None,
            merged: false,
        });
    }

    pub(super) fn merge_resolved(&mut self, id: u64, merged: bool, now: Timestamp) {
        if let Some(merge) = self.merges.get_mut(&id) {
            merge.merged |= merged;
            merge.resolved.get_or_insert(now);
        }
    }

    /// Notes a lease taken or renewed at `now` that ends at `end`.
    pub(super) fn leased(&mut self, store: StoreId, was: bool, now: Timestamp, end: Timestamp) {
        let intervals = self.leases.entry(store).or_default();
        match intervals.last_mut() {
            Some(last) if was => last.end = end,
            _ => intervals.push(Interval { start: now, end }),
        }
    }

    /// Notes that a lease in force ended before its time.
    pub(super) fn lease_ended(&mut self, store: StoreId, now: Timestamp) {
        if let Some(last) = self.leases.get_mut(&store).and_then(|list| list.last_mut()) {
            last.end = last.end.min(now);
        }
    }

    /// Notes that a peer has become another one.
    pub(super) fn formed(
        &mut self,
        peer: (RegionId, StoreId),
        before: Form,
        form: Form,
        now: Timestamp,
    ) {
        let formed = self.forms.entry(peer).or_default();
        if form.epoch != before.epoch {
            formed.epoch_at = now;
        }
        if form.leads_in.is_some() && form.leads_in != before.leads_in {
            formed.leads_at = now;
        }
        if before.claims && !form.claims {
            formed.yielded_at = now;
        }
    }

    pub(super) fn struck(&mut self, kind: FaultKind, phase: PhaseName) {
        *self.strikes.entry((kind, phase)).or_default() += 1;
    }

    pub(super) fn wait_sent(&mut self, call: CallId, region: RegionId) {
        if let Some(stream) = self.streams.get_mut(&call) {
            let count = stream.in_flight.entry(region).or_default();
            *count += 1;
            if *count > 1 {
                stream.asked_twice.get_or_insert(region);
            }
            stream.waiting += 1;
            stream.most_waiting = stream.most_waiting.max(stream.waiting);
        }
    }

    pub(super) fn wait_answered(&mut self, call: CallId, region: RegionId) {
        if let Some(stream) = self.streams.get_mut(&call)
            && let Some(count) = stream.in_flight.get_mut(&region)
        {
            *count -= 1;
            if *count == 0 {
                stream.in_flight.remove(&region);
            }
            stream.waiting -= 1;
        }
    }

    /// Notes that an answer to a renewal reached the client. That to Finish
    /// comes after all of them.
    pub(super) fn update_answered(&mut self, call: CallId, valid: bool, now: Timestamp) {
        if let Some(stream) = self.streams.get_mut(&call)
            && stream.answers.len() < stream.updates.len()
        {
            stream.answers.push((now, valid));
        }
    }

    /// Notes that a client reads that its stream was taken away.
    pub(super) fn superseded(&mut self, call: CallId) {
        if let Some(stream) = self.streams.get(&call) {
            self.superseded.insert(stream.store);
        }
    }

    /// Notes what a client asks.
    pub(super) fn asked(&mut self, call: CallId, request: &Request, now: Timestamp) {
        let active = self.active.get_or_insert(Interval {
            start: now,
            end: now,
        });
        active.end = now;
        let work = &mut self.work;
        match request {
            Request::ListStores => work.store_lists += 1,
            Request::ScanRegions { .. } => work.scans += 1,
            Request::ListClaims { store } => *work.listings.entry(*store).or_default() += 1,
            Request::LeaderRead { read, .. } => {
                *work.reads.entry(read.region_id).or_default() += 1;
            }
            Request::OpenStream { store } => {
                *work.streams.entry(*store).or_default() += 1;
                self.streams.insert(call, StreamRecord::new(*store));
            }
            Request::StreamSend(StreamRequest::WaitApply { regions }) => {
                for target in regions {
                    *work.waits.entry(target.region_id).or_default() += 1;
                }
            }
            Request::StreamSend(StreamRequest::UpdateLease { .. }) => {
                if let Some(stream) = self.streams.get_mut(&call) {
                    stream.sent.push(now);
                }
            }
            Request::StreamSend(StreamRequest::Finish) => {
                if let Some(stream) = self.streams.get_mut(&call) {
                    stream.finish_sent.get_or_insert(now);
                }
            }
            Request::MinTs | Request::StreamGarbage | Request::HalfClose | Request::Cancel => {}
        }
    }

    /// Collects what a hold rests on: the newest stream of each store.
    pub(super) fn hold_mark(&self) -> HoldMark {
        let mut mark = HoldMark::default();
        for (&call, stream) in &self.streams {
            let last = stream.answers.len().checked_sub(1);
            if let Some(update) = last.and_then(|last| stream.updates.get(last)) {
                mark.streams.insert(stream.store, call);
                mark.renewed.insert(stream.store, update.at);
            }
        }
        mark.first_wait = mark
            .streams
            .values()
            .filter_map(|call| self.streams.get(call)?.first_wait)
            .min();
        mark
    }

    /// Returns the stretch without a break in which `store` was suspended at
    /// `at`.
    pub(in crate::sim) fn suspended_at(&self, store: StoreId, at: Timestamp) -> Option<Interval> {
        self.leases
            .get(&store)?
            .iter()
            .rev()
            .find(|interval| interval.start <= at && at < interval.end)
            .copied()
    }
}
