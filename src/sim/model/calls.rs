use std::collections::VecDeque;
use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;

use super::cluster::tso;
use super::event::{Event, PdReport, StreamInput};
use super::node::{Life, StorageMode};
use super::strike::Moment;
use super::{
    Answer, CallId, Cluster, Code, ModelRegionError, ReadKind, ReadRequest, RegionErrorDetail,
    Request, Status, StreamReply,
};
use crate::region::{RegionId, StoreId};
use crate::time::Timestamp;

/// A call or stream that is not over.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) store: StoreId,
    pub(super) kind: CallKind,
}

#[derive(Clone, Debug)]
pub(super) enum CallKind {
    Pd,
    Claims,
    Read(ReadRequest),
    Stream(Box<StreamCall>),
}

/// A prepare stream.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamCall {
    pub(super) inbox: VecDeque<(Timestamp, StreamInput)>,
    pub(super) working: bool,
    /// When the newest request arrives, so that they stay in order.
    pub(super) last_in: Timestamp,
    pub(super) last_out: Timestamp,
    /// Whether the server's end lives.
    pub(super) serving: bool,
    pub(super) aborted_at: Option<Timestamp>,
    /// Whether it swallows everything.
    pub(super) swallows: bool,
    /// The regions asked for so far.
    pub(super) entries: u64,
    /// Of a rival: its Finish is served this long after its stream was taken
    /// away.
    pub(super) lingers: Option<Duration>,
}

/// How a stream ends that another one has taken away.
pub(super) const ABORTED: &str = "the loop has been aborted by server";

const CLAIMS_PER_BATCH: usize = 64;

impl Cluster {
    pub(super) fn take_in(&mut self, call: CallId, request: Request) {
        let delay = self.jittered(self.plan.timing.client_delay);
        let delay = delay + self.extra_delay(self.store_asked(call, &request));
        match request {
            Request::ListStores | Request::ScanRegions { .. } | Request::MinTs => {
                self.calls.insert(
                    call,
                    Call {
                        store: StoreId(0),
                        kind: CallKind::Pd,
                    },
                );
                self.after(delay, Event::AtPd(call, request));
            }
            Request::ListClaims { store } => self.dial(call, store, CallKind::Claims, delay),
            Request::LeaderRead { store, read } => {
                self.dial(call, store, CallKind::Read(read), delay);
            }
            Request::OpenStream { store } => {
                // What is sent on it later never overtakes the opening.
                let stream = StreamCall {
                    last_in: self.now + delay,
                    ..StreamCall::default()
                };
                self.dial(call, store, CallKind::Stream(Box::new(stream)), delay);
            }
            Request::StreamSend(request) => {
                self.stream_send(call, StreamInput::Request(request), delay);
            }
            Request::StreamGarbage => self.stream_send(call, StreamInput::Garbage, delay),
            Request::HalfClose => self.stream_send(call, StreamInput::HalfClose, delay),
            Request::Cancel => self.cancel(call, delay),
        }
    }

    /// Returns the store that a request goes to; none for PD.
    fn store_asked(&self, call: CallId, request: &Request) -> Option<StoreId> {
        match request {
            Request::ListStores | Request::ScanRegions { .. } | Request::MinTs => None,
            Request::ListClaims { store }
            | Request::LeaderRead { store, .. }
            | Request::OpenStream { store } => Some(*store),
            Request::StreamSend(_)
            | Request::StreamGarbage
            | Request::HalfClose
            | Request::Cancel => self.calls.get(&call).map(|call| call.store),
        }
    }

    /// Notes a call to a store that must not be called.
    pub(super) fn check_target(&mut self, call: CallId, request: &Request) {
        let what = match request {
            Request::ListClaims { .. } => "its claims were asked for",
            Request::LeaderRead { .. } => "it was read from",
            Request::OpenStream { .. } => "a stream was opened there",
            _ => return,
        };
        let Some(store) = self.store_asked(call, request) else {
            return;
        };
        let node = self.stores.get(&store);
        let why = if !node.is_some_and(|node| node.info.takes_part()) {
            "no store that takes part"
        } else if self.history.superseded.contains(&store) {
            "left to the one who took the stream"
        } else {
            return;
        };
        let message = format!("store {store} is {why}, and {what}");
        self.history.forbidden.push(message);
    }

    /// Draws by how much a message between a client and a store is late.
    fn extra_delay(&mut self, store: Option<StoreId>) -> Duration {
        let most = store
            .and_then(|store| self.stores.get(&store))
            .filter(|node| self.now < node.client_delay.0)
            .map_or(0, |node| node.client_delay.1);
        if most == 0 {
            return Duration::ZERO;
        }
        Duration::from_micros(self.rng.random_range(0..=most))
    }

    fn dial(&mut self, call: CallId, store: StoreId, kind: CallKind, delay: Duration) {
        self.calls.insert(call, Call { store, kind });
        self.after(delay, Event::AtStore(call));
    }

    /// The client drops a call. Of a stream the server hears a little later.
    fn cancel(&mut self, call: CallId, delay: Duration) {
        if let Some(Call {
            kind: CallKind::Stream(stream),
            ..
        }) = self.calls.get_mut(&call)
            && stream.serving
        {
            // Nothing of it reaches the client any more, the end neither.
            stream.swallows = true;
            let at = stream.last_in.max(self.now + delay);
            self.queue
                .push(at, Event::StreamInput(call, StreamInput::Dropped));
        } else {
            self.calls.remove(&call);
        }
    }

    pub(super) fn at_pd(&mut self, call: CallId, request: Request) {
        if self.now < self.pd.down_until {
            let status = Status::new(Code::Unavailable, "not leader");
            return self.answer(call, Answer::End(status));
        }
        let answer = match request {
            Request::ListStores => Answer::Stores(self.stores()),
            Request::ScanRegions { range, limit } => {
                Answer::Regions(self.pd.scan(&range, limit, self.now))
            }
            _ => Answer::MinTs(tso(self.now)),
        };
        self.answer(call, answer);
    }

    /// Sends an answer off to the client.
    pub(super) fn answer(&mut self, call: CallId, answer: Answer) {
        self.answer_after(call, answer, Duration::ZERO);
    }

    pub(super) fn answer_after(&mut self, call: CallId, answer: Answer, extra: Duration) {
        let Some(known) = self.calls.get(&call) else {
            return;
        };
        let store = known.store;
        let slow = self.slowness(store);
        let late = self.extra_delay(Some(store));
        let delay = self.jittered(self.plan.timing.client_delay) + slow + late + extra;
        let mut at = self.now + delay;
        if let Some(Call {
            kind: CallKind::Stream(stream),
            ..
        }) = self.calls.get_mut(&call)
        {
            at = at.max(stream.last_out);
            stream.last_out = at;
        }
        self.queue.push(at, Event::Deliver(call, answer));
    }

    /// Returns by how much a store's answer is late now.
    fn slowness(&mut self, store: StoreId) -> Duration {
        let now = self.now;
        let node = self.stores.get(&store);
        let slow = node.map(|node| (node.slow_answer, node.slower_since));
        let slow = slow.filter(|((until, _), _)| now < *until);
        let ((until, most), since) = slow.unwrap_or(((now, 0), None));
        let drawn = self.rng.random_range(0..=most);
        let micros = match since {
            Some(since) => {
                let all = until.saturating_duration_since(since).as_micros().max(1);
                let gone = now.saturating_duration_since(since).as_micros();
                (u128::from(most) * gone / all) as u64
            }
            None => drawn,
        };
        Duration::from_micros(micros)
    }

    /// Lets a stream that swallows everything say one last thing.
    pub(super) fn answer_muted(&mut self, call: CallId, answer: Answer) {
        if let Some(Call {
            kind: CallKind::Stream(stream),
            ..
        }) = self.calls.get_mut(&call)
        {
            stream.swallows = false;
        }
        self.answer(call, answer);
    }

    /// An answer reaches its client.
    pub(super) fn arrive(&mut self, call: CallId, answer: Answer) {
        let Some(known) = self.calls.get(&call) else {
            return;
        };
        let swallowed = matches!(&known.kind, CallKind::Stream(stream) if stream.swallows);
        if swallowed {
            return;
        }
        let is_last = !matches!(
            answer,
            Answer::Claims(_) | Answer::Opened | Answer::Stream(_)
        );
        if is_last {
            self.calls.remove(&call);
        }
        if call.is_internal() {
            self.rival_hears(call, answer);
        } else {
            self.answers.push_back((call, answer));
        }
    }

    /// A call reaches its store.
    pub(super) fn at_store(&mut self, call: CallId) {
        let Some(Call { store, kind }) = self.calls.get(&call) else {
            return;
        };
        let (store, kind) = (*store, kind.clone());
        let Some(node) = self.stores.get(&store) else {
            return self.end(call, Code::Unavailable, "dns error");
        };
        if node.life == Life::Down {
            return self.end(
                call,
                Code::Unavailable,
                "tcp connect error: Connection refused",
            );
        }
        if node.info.is_tiflash() {
            return self.end(call, Code::Unimplemented, "");
        }
        let stuck = node.stuck_until;
        match kind {
            CallKind::Pd => {}
            CallKind::Stream(_) => self.stream_opened(call, store),
            _ if self.now < stuck => self.queue.push(stuck, Event::AtStore(call)),
            CallKind::Claims => self.list_claims(call, store),
            CallKind::Read(read) => self.leader_read(call, store, &read),
        }
    }

    pub(super) fn end(&mut self, call: CallId, code: Code, message: &str) {
        self.answer(call, Answer::End(Status::new(code, message)));
    }

    fn list_claims(&mut self, call: CallId, store: StoreId) {
        let Some(node) = self.stores.get(&store) else {
            return;
        };
        if node.engine_v2 {
            let message = "broadcast_check_pending_admin not implemented; note: Raftstore V2 doesn't support snapshot backup yet.";
            return self.end(call, Code::Internal, message);
        }
        let mut claims: Vec<_> = if node.raft_runs() {
            node.peers
                .values()
                .filter_map(|peer| peer.claim())
                .collect()
        } else {
            Vec::new()
        };
        claims.shuffle(&mut self.rng);
        let cost = self.plan.timing.answer_cost;
        let mut extra = Duration::ZERO;
        // Batches of one call stay in order: each one takes longer.
        let base = self.jittered(self.plan.timing.client_delay) + self.extra_delay(Some(store));
        for batch in claims.chunks(CLAIMS_PER_BATCH) {
            extra += cost * u32::try_from(batch.len()).unwrap_or(u32::MAX);
            let answer = Answer::Claims(batch.to_vec());
            self.queue
                .push(self.now + base + extra, Event::Deliver(call, answer));
        }
        let last = Answer::End(Status::ok());
        self.queue
            .push(self.now + base + extra, Event::Deliver(call, last));
        self.moment(Moment::Listing);
    }

    fn leader_read(&mut self, call: CallId, store: StoreId, read: &ReadRequest) {
        let error = match self.check_store(store, read) {
            Ok(()) => self.injected_error(store, read.region_id, true),
            Err(error) => Some(error),
        };
        self.moment(Moment::Read);
        if let Some(error) = error {
            return self.answer(call, Answer::Read(Err(error)));
        }
        self.with_peer(store, read.region_id, true, |peer, ctx| {
            peer.read(call, read, ctx);
        });
    }

    /// What is looked at before the region's peer.
    fn check_store(&self, store: StoreId, read: &ReadRequest) -> Result<(), ModelRegionError> {
        let region_id = read.region_id;
        let node = self.stores.get(&store);
        let mode = node.map_or(StorageMode::V1, |node| node.storage);
        if !api_version_fits(mode, read) {
            let message = format!("ApiVersionNotMatched: storage {mode:?}");
            return Err(ModelRegionError::new(
                RegionErrorDetail::ApiVersionNotMatched,
                message,
            ));
        }
        if read.peer_store != store {
            let (requested, actual) = (read.peer_store, store);
            let message = format!("to store id {requested}, mine {actual}");
            let detail = RegionErrorDetail::StoreNotMatch { requested, actual };
            return Err(ModelRegionError::new(detail, message));
        }
        let runs = node.is_some_and(|node| node.raft_runs());
        if !runs || !node.is_some_and(|node| node.peers.contains_key(&region_id)) {
            let message = format!("region {region_id} is missing");
            let detail = RegionErrorDetail::RegionNotFound { region_id };
            return Err(ModelRegionError::new(detail, message));
        }
        Ok(())
    }

    /// Draws one of the errors that a store in trouble gives.
    pub(super) fn injected_error(
        &mut self,
        store: StoreId,
        region_id: RegionId,
        is_read: bool,
    ) -> Option<ModelRegionError> {
        let now = self.now;
        let node = self.stores.get(&store)?;
        let percent = |(until, percent): (Timestamp, u32)| if now < until { percent } else { 0 };
        let (busy, errors) = (percent(node.busy), percent(node.errors));
        if busy == 0 && errors == 0 {
            return None;
        }
        if self.rng.random_range(0..100) < busy {
            let reason = "scheduler is busy".to_owned();
            let backoff_ms = [0, 10, 200, 2_000][self.rng.random_range(0..4)];
            let detail = RegionErrorDetail::ServerIsBusy { reason, backoff_ms };
            return Some(ModelRegionError::new(detail, "server is busy"));
        }
        if self.rng.random_range(0..100) >= errors {
            return None;
        }
        let reason = "can not read index due to merge".to_owned();
        let detail = match self.rng.random_range(0..if is_read { 8 } else { 6 }) {
            0 => RegionErrorDetail::RegionNotFound { region_id },
            1 => RegionErrorDetail::StaleCommand,
            2 => RegionErrorDetail::None,
            3 => RegionErrorDetail::RegionNotInitialized { region_id },
            4 => RegionErrorDetail::ProposalInMergingMode { region_id },
            5 => RegionErrorDetail::RecoveryInProgress { region_id },
            6 => RegionErrorDetail::ReadIndexNotReady { reason, region_id },
            _ => RegionErrorDetail::NotLeader {
                region_id,
                leader: None,
            },
        };
        let message = "injected".to_owned();
        Some(ModelRegionError::new(detail, message))
    }

    pub(super) fn read_done(&mut self, call: CallId, result: Result<(), ModelRegionError>) {
        let cost = self.plan.timing.answer_cost;
        self.answer_after(call, Answer::Read(result), cost);
    }

    /// PD hears what a leader told.
    pub(super) fn pd_hears(&mut self, report: PdReport) {
        if self.now >= self.pd.down_until {
            self.pd.report(report);
        }
    }

    /// All leaders tell PD of themselves, as they do every minute.
    pub(super) fn refresh_pd(&mut self) {
        self.report_leaders(self.plan.timing.pd_lag);
        self.after(self.plan.timing.pd_refresh, Event::Refresh);
    }

    pub(super) fn report_leaders(&mut self, within: Duration) {
        let most = within.as_micros() as u64;
        for node in self.stores.values() {
            if !node.raft_runs() {
                continue;
            }
            for peer in node.peers.values() {
                if let (true, Some(leader)) = (peer.is_leader(), peer.own()) {
                    let report = PdReport {
                        region: std::sync::Arc::clone(&peer.region),
                        leader,
                        term: peer.term,
                    };
                    let delay = Duration::from_micros(self.rng.random_range(0..=most));
                    self.queue.push(self.now + delay, Event::Report(report));
                }
            }
        }
    }

    pub(super) fn calls_at(&self, store: StoreId) -> Vec<CallId> {
        let calls = self.calls.iter();
        calls
            .filter(|(_, call)| call.store == store)
            .map(|(&id, _)| id)
            .collect()
    }

    /// Ends every call at a store that goes down.
    pub(super) fn break_calls(&mut self, store: StoreId) {
        for call in self.calls_at(store) {
            if let Some(Call {
                kind: CallKind::Stream(stream),
                ..
            }) = self.calls.get_mut(&call)
            {
                stream.serving = false;
            }
            self.end(call, Code::Unavailable, "Socket closed");
        }
        if let Some(node) = self.stores.get_mut(&store) {
            node.stream = None;
        }
    }

    pub(super) fn emit(&mut self, call: CallId, reply: StreamReply) {
        let serving = matches!(
            self.calls.get(&call),
            Some(Call { kind: CallKind::Stream(stream), .. }) if stream.serving
        );
        if !serving {
            return;
        }
        if let StreamReply::WaitApplyDone { target, .. } = &reply {
            self.history.wait_answered(call, target.region_id);
        }
        self.answer(call, Answer::Stream(reply));
    }
}

/// Which read without keys is served by which storage (observations 15.6).
fn api_version_fits(mode: StorageMode, read: &ReadRequest) -> bool {
    matches!(
        (read.api_version, mode, read.kind),
        (0, StorageMode::V1, _)
            | (0, StorageMode::V2, ReadKind::KvBatchGet)
            | (0, StorageMode::V1Ttl, ReadKind::RawBatchGet)
            | (2, StorageMode::V2, _)
    )
}
