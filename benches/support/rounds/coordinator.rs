use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::cluster::StreamRequest;
use snapshot_prepare::machine::Config;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::{KeyRange, KeyRangeSet};
use snapshot_prepare::region::{Claim, Region, RegionId, StoreId, WaitTarget};
use snapshot_prepare::sim::model::{
    Answer, CallId, Code, ModelRegionError, ReadRequest, Request, StreamReply,
};
use snapshot_prepare::time::Timestamp;

use super::line::Line;
use super::proof::Proofs;
use super::run::Ran;
use super::waiting::{Asked, Waiting};

/// The time from a failure until what failed is asked again.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The stores are listed.
    Listing,
    /// Their claims are, before anybody is suspended.
    Probing,
    Dialing,
    /// All streams are open; nothing is sent before the instant.
    Settling(Timestamp),
    Leasing,
    Asking,
    /// Everything is proven; listed and renewed once more.
    Checking,
    Holding(Timestamp),
    Releasing,
    /// Over, and whether well.
    Over(bool),
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    Stores,
    Claims(StoreId),
    Stream(StoreId),
    Read(StoreId),
}

/// A store and its stream.
#[derive(Clone, Copy, Debug)]
struct Seat {
    stream: CallId,
    is_open: bool,
    /// Lease requests sent and answered, `Finish` among them.
    sent: u64,
    answered: u64,
    /// How many have to be answered for the present stage to go on.
    awaited: u64,
}

/// The coordinator; `mod.rs` says how it works.
pub(super) struct Coordinator<'a> {
    config: &'a Config,
    hold: Duration,
    pub(super) line: Line,
    stage: Stage,
    calls: BTreeMap<CallId, Purpose>,
    seats: BTreeMap<StoreId, Seat>,
    /// Listings that are not done, and what they have brought.
    listings: usize,
    found: Vec<(StoreId, Claim)>,
    /// The keys for which the listings were begun, and whether that was because
    /// nothing else was left to do.
    wanted: KeyRangeSet,
    is_last_resort: bool,
    waiting: Waiting,
    proofs: Proofs,
    failed: KeyRangeSet,
    retry_at: Option<Timestamp>,
    renew_at: Option<Timestamp>,
    suspended_at: Timestamp,
    has_failed: bool,
}

impl<'a> Coordinator<'a> {
    pub(super) fn new(config: &'a Config, hold: Duration, line: Line) -> Self {
        Self {
            config,
            hold,
            line,
            stage: Stage::Listing,
            calls: BTreeMap::new(),
            seats: BTreeMap::new(),
            listings: 0,
            found: Vec::new(),
            wanted: KeyRangeSet::new(),
            is_last_resort: false,
            waiting: Waiting::default(),
            proofs: Proofs::default(),
            failed: KeyRangeSet::new(),
            retry_at: None,
            renew_at: None,
            suspended_at: Timestamp::default(),
            has_failed: false,
        }
    }

    pub(super) fn start(&mut self) {
        let call = self.line.call(Request::ListStores);
        self.calls.insert(call, Purpose::Stores);
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    pub(super) fn ran(&self) -> Option<Ran> {
        let suspended = self.line.now.saturating_duration_since(self.suspended_at);
        (self.stage == Stage::Over(true)).then(|| Ran {
            suspended: suspended.saturating_sub(self.hold),
            failed: self.has_failed,
        })
    }

    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let at_stage = match self.stage {
            Stage::Settling(at) | Stage::Holding(at) => Some(at),
            Stage::Asking if self.listings == 0 => self.retry_at,
            _ => None,
        };
        let due = [at_stage, self.renew_at, self.waiting.next_deadline()];
        due.into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn time_passed(&mut self) {
        let now = self.line.now;
        if self.renew_at.is_some_and(|at| at <= now) {
            self.lease_all();
        }
        while let Some(region) = self.waiting.take_overdue(now) {
            self.fail(&region.range);
        }
        match self.stage {
            Stage::Settling(at) if at <= now => {
                self.enter(Stage::Leasing, PhaseName::Suspend);
                self.suspended_at = now;
                self.lease_all();
            }
            Stage::Asking if self.listings == 0 => self.next_round(),
            Stage::Holding(at) if at <= now => self.release(),
            _ => {}
        }
    }

    fn enter(&mut self, stage: Stage, phase: PhaseName) {
        self.stage = stage;
        self.line.cluster.note_phase(phase);
    }

    /// Sends a renewal (or first lease) to all stores; the present stage goes on
    /// when they are answered.
    fn lease_all(&mut self) {
        let seconds = self.config.lease.as_secs();
        self.renew_at = Some(self.line.now + self.config.lease / 4);
        for seat in self.seats.values_mut() {
            seat.sent += 1;
            seat.awaited = seat.sent;
            let update = StreamRequest::UpdateLease { seconds };
            self.line.send(seat.stream, update);
        }
    }

    fn leases_are_answered(&self) -> bool {
        let mut seats = self.seats.values();
        seats.all(|seat| seat.answered >= seat.awaited)
    }

    /// Lists the claims of all stores.
    fn look(&mut self) {
        self.found.clear();
        let stores: Vec<StoreId> = self.seats.keys().copied().collect();
        self.listings = stores.len();
        for store in stores {
            let call = self.line.call(Request::ListClaims { store });
            self.calls.insert(call, Purpose::Claims(store));
        }
    }

    /// Looks anew at what failed once the timer goes off, and at what is missing
    /// when nothing else is left to do.
    fn next_round(&mut self) {
        match self.retry_at {
            Some(at) if at > self.line.now => {}
            Some(_) => {
                self.retry_at = None;
                self.wanted = std::mem::take(&mut self.failed);
                self.is_last_resort = false;
                self.look();
            }
            None if !self.waiting.is_empty() => {}
            None => {
                self.wanted = self.proofs.gaps();
                self.is_last_resort = true;
                if self.wanted.is_empty() {
                    self.enter(Stage::Checking, PhaseName::Verify);
                    self.lease_all();
                }
                self.look();
            }
        }
    }

    /// Asks for all that is wanted, as the listings have it, at once.
    fn ask(&mut self) {
        let mut newest: BTreeMap<RegionId, (StoreId, Region)> = BTreeMap::new();
        for (store, Claim { region, .. }) in &self.found {
            let is_newer = newest
                .get(&region.id)
                .is_none_or(|(_, known)| known.epoch.version <= region.epoch.version);
            let is_wanted = self.wanted.overlaps(&region.range) && !self.waiting.holds(region.id);
            if is_newer && is_wanted {
                newest.insert(region.id, (*store, region.clone()));
            }
        }
        if self.is_last_resort && newest.is_empty() {
            // Nobody leads what is missing.
            let missing: Vec<KeyRange> = self.wanted.iter().collect();
            missing.iter().for_each(|range| self.fail(range));
        }
        let deadline = self.line.now + self.config.ask_timeout;
        let mut sent: BTreeMap<StoreId, Vec<WaitTarget>> = BTreeMap::new();
        for (region_id, (store, region)) in newest {
            let epoch = region.epoch;
            let target = WaitTarget { region_id, epoch };
            sent.entry(store).or_default().push(target);
            let asked = Asked::Wait(store, region_id);
            self.waiting.add(asked, region, deadline);
        }
        for (store, regions) in sent {
            if let Some(seat) = self.seats.get(&store) {
                let wait = StreamRequest::WaitApply { regions };
                self.line.send(seat.stream, wait);
            }
        }
    }

    /// A region failed: sets the timer anew.
    fn fail(&mut self, range: &KeyRange) {
        self.has_failed = true;
        self.failed.insert(range);
        self.retry_at = Some(self.line.now + RETRY);
    }

    pub(super) fn answered(&mut self, call: CallId, answer: Answer) {
        let Some(&purpose) = self.calls.get(&call).filter(|_| !self.is_over()) else {
            return;
        };
        match (purpose, answer) {
            (Purpose::Stores, Answer::Stores(stores)) => {
                let part = stores.iter().filter(|store| store.takes_part());
                self.seats = part.map(|store| (store.id, Seat::empty())).collect();
                self.stage = Stage::Probing;
                self.look();
            }
            // PD's leader changes; nobody is suspended yet.
            (Purpose::Stores, _) => self.start(),
            (Purpose::Claims(store), Answer::Claims(claims)) => {
                let claims = claims.into_iter().map(|claim| (store, claim));
                self.found.extend(claims);
            }
            (Purpose::Claims(_), Answer::End(status)) if status.code == Code::Ok => {
                self.listings -= 1;
                if self.listings == 0 {
                    self.listed();
                }
            }
            (Purpose::Read(store), Answer::Read(result)) => self.read_done(call, store, result),
            (Purpose::Stream(store), Answer::Opened) => self.opened(store),
            (Purpose::Stream(store), Answer::Stream(reply)) => self.stream_said(store, reply),
            (Purpose::Stream(_), Answer::End(_)) if self.stage == Stage::Releasing => {}
            // It has no second attempt.
            _ => self.stage = Stage::Over(false),
        }
    }

    /// All listings are done.
    fn listed(&mut self) {
        match self.stage {
            Stage::Probing => {
                self.stage = Stage::Dialing;
                for (&store, seat) in &mut self.seats {
                    seat.stream = self.line.call(Request::OpenStream { store });
                    self.calls.insert(seat.stream, Purpose::Stream(store));
                }
            }
            Stage::Asking => self.ask(),
            Stage::Checking => self.compare(),
            _ => {}
        }
    }

    fn opened(&mut self, store: StoreId) {
        if let Some(seat) = self.seats.get_mut(&store) {
            seat.is_open = true;
        }
        if self.stage == Stage::Dialing && self.seats.values().all(|seat| seat.is_open) {
            self.stage = Stage::Settling(self.line.now + self.config.settle);
        }
    }

    fn stream_said(&mut self, store: StoreId, reply: StreamReply) {
        match reply {
            StreamReply::WaitApplyDone { target, result, .. } => {
                let asked = Asked::Wait(store, target.region_id);
                self.wait_done(asked, store, result);
            }
            StreamReply::LeaseUpdated {
                last_lease_is_valid,
            } => self.lease_answered(store, last_lease_is_valid),
        }
    }

    fn lease_answered(&mut self, store: StoreId, was_valid: bool) {
        if let Some(seat) = self.seats.get_mut(&store) {
            seat.answered += 1;
            if seat.answered > 1 && !was_valid {
                self.stage = Stage::Over(false);
                return;
            }
        }
        if !self.leases_are_answered() {
            return;
        }
        match self.stage {
            Stage::Leasing => {
                self.enter(Stage::Asking, PhaseName::WaitApply);
                self.wanted.insert(&KeyRange::whole());
                self.ask();
            }
            Stage::Checking => self.compare(),
            Stage::Releasing => self.stage = Stage::Over(true),
            _ => {}
        }
    }

    /// A wait that is confirmed is followed by its read at once.
    fn wait_done(&mut self, asked: Asked, store: StoreId, result: Result<(), ModelRegionError>) {
        let Some(region) = self.waiting.take(asked) else {
            return;
        };
        let Some(peer) = region.peer_on(store).filter(|_| result.is_ok()) else {
            return self.fail(&region.range);
        };
        let read = ReadRequest {
            region_id: region.id,
            epoch: region.epoch,
            peer_id: peer.id,
            peer_store: store,
            ..ReadRequest::default()
        };
        let call = self.line.call(Request::LeaderRead { store, read });
        self.calls.insert(call, Purpose::Read(store));
        let deadline = self.line.now + self.config.read_timeout;
        self.waiting.add(Asked::Read(call), region, deadline);
    }

    fn read_done(&mut self, call: CallId, _: StoreId, result: Result<(), ModelRegionError>) {
        self.calls.remove(&call);
        match (self.waiting.take(Asked::Read(call)), result) {
            (Some(region), Ok(())) => self.proofs.insert(region),
            (Some(region), Err(_)) => self.fail(&region.range),
            (None, _) => {}
        }
    }

    /// Once listings and renewals are done: holds, or asks again for what
    /// differs.
    fn compare(&mut self) {
        if self.listings > 0 || !self.leases_are_answered() {
            return;
        }
        let claims = self.found.drain(..).map(|(_, claim)| claim);
        let claims: Vec<Claim> = claims.collect();
        let differing = self.proofs.compare(&claims);
        if differing.is_empty() {
            self.enter(Stage::Holding(self.line.now + self.hold), PhaseName::Hold);
            self.line.cluster.note_hold(self.line.now);
        } else {
            self.enter(Stage::Asking, PhaseName::WaitApply);
            let ranges: Vec<KeyRange> = differing.iter().collect();
            ranges.iter().for_each(|range| self.fail(range));
        }
    }

    fn release(&mut self) {
        self.line.cluster.note_finish(self.line.now);
        self.enter(Stage::Releasing, PhaseName::Release);
        self.renew_at = None;
        for seat in self.seats.values_mut() {
            seat.sent += 1;
            seat.awaited = seat.sent;
            self.line.send(seat.stream, StreamRequest::Finish);
        }
    }
}

impl Seat {
    const fn empty() -> Self {
        Self {
            stream: CallId(u64::MAX >> 1),
            is_open: false,
            sent: 0,
            answered: 0,
            awaited: 0,
        }
    }
}
