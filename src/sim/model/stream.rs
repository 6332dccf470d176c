use std::time::Duration;

use rand::Rng;

use super::calls::{ABORTED, Call, CallKind, StreamCall};
use super::event::{Event, StreamInput};
use super::history::Served;
use super::node::FinishFault;
use super::strike::{Moment, Strike};
use super::{
    Answer, CallId, Cluster, Code, ModelRegionError, RegionErrorDetail, Status, StreamReply,
};
use crate::cluster::StreamRequest;
use crate::progress::PhaseName;
use crate::region::{RegionEpoch, RegionId, StoreId, WaitTarget};
use crate::sim::fault::FaultKind;

const NO_LEASE: &str =
    "the lease has expired, you may not send `wait_apply` because it is no meaning";
const NOT_READY: &str = "coprocessor not initialized";

impl Cluster {
    fn stream_mut(&mut self, call: CallId) -> Option<&mut StreamCall> {
        match self.calls.get_mut(&call) {
            Some(Call {
                kind: CallKind::Stream(stream),
                ..
            }) => Some(stream),
            _ => None,
        }
    }

    /// A new stream takes the place of the one before.
    pub(super) fn stream_opened(&mut self, call: CallId, store: StoreId) {
        let before = match self.stores.get_mut(&store) {
            Some(node) => node.stream.replace(call),
            None => None,
        };
        let lingers = before.and_then(|before| self.stream_mut(before)?.lingers);
        if let (Some(before), Some(lingers)) = (before, lingers) {
            let now = self.now;
            if let Some(stream) = self.stream_mut(before) {
                stream.aborted_at.get_or_insert(now);
            }
            self.strike_after(lingers, Strike::FinishServed(before));
        } else if let Some(before) = before {
            // The older one notices at once, or when it is done with what it
            // had taken in.
            let longest = if self.rng.random_ratio(2, 3) {
                500
            } else {
                100_000
            };
            let delay = Duration::from_micros(self.rng.random_range(0..=longest));
            let now = self.now;
            if let Some(stream) = self.stream_mut(before) {
                stream.aborted_at.get_or_insert(now);
                self.after(delay, Event::Aborted(before));
            }
        }
        if let Some(stream) = self.stream_mut(call) {
            stream.serving = true;
            self.answer(call, Answer::Opened);
            if !call.is_internal() {
                self.moment(Moment::Open);
            }
        }
    }

    pub(super) fn stream_aborted(&mut self, call: CallId) {
        self.end_stream(call, Code::Cancelled, ABORTED);
    }

    /// Ends the server's side of a stream. The lease stays as it is.
    pub(super) fn end_stream(&mut self, call: CallId, code: Code, message: &str) {
        let Some(stream) = self.stream_mut(call) else {
            return;
        };
        if !std::mem::replace(&mut stream.serving, false) {
            return;
        }
        self.leave_store(call);
        self.end(call, code, message);
    }

    fn leave_store(&mut self, call: CallId) {
        if let Some(store) = self.calls.get(&call).map(|call| call.store)
            && let Some(node) = self.stores.get_mut(&store)
            && node.stream == Some(call)
        {
            node.stream = None;
        }
    }

    /// The client sends something on a stream.
    pub(super) fn stream_send(&mut self, call: CallId, input: StreamInput, delay: Duration) {
        let at = self.now + delay;
        if let Some(stream) = self.stream_mut(call) {
            stream.last_in = stream.last_in.max(at);
            let at = stream.last_in;
            if !stream.swallows {
                self.queue.push(at, Event::StreamInput(call, input));
            }
        }
    }

    pub(super) fn stream_input(&mut self, call: CallId, input: StreamInput) {
        let now = self.now;
        let cost = self.plan.timing.answer_cost;
        let Some(stream) = self.stream_mut(call) else {
            return;
        };
        if matches!(input, StreamInput::Dropped) {
            if std::mem::replace(&mut stream.serving, false) {
                self.leave_store(call);
            }
            self.calls.remove(&call);
            return;
        }
        if !stream.serving || stream.aborted_at.is_some() {
            return;
        }
        stream.inbox.push_back((now, input));
        if !std::mem::replace(&mut stream.working, true) {
            self.after(cost, Event::StreamWork(call));
        }
    }

    /// Serves the next request.
    pub(super) fn stream_work(&mut self, call: CallId) {
        let Some(stream) = self.stream_mut(call) else {
            return;
        };
        stream.working = false;
        if !stream.serving {
            return;
        }
        let Some((_, input)) = stream.inbox.pop_front() else {
            return;
        };
        match input {
            StreamInput::Request(request) => self.serve(call, request),
            StreamInput::Garbage | StreamInput::HalfClose | StreamInput::Dropped => {
                self.end_stream(call, Code::Cancelled, "CANCELLED");
            }
        }
        let cost = self.plan.timing.answer_cost;
        if let Some(stream) = self.stream_mut(call)
            && stream.serving
            && !stream.inbox.is_empty()
        {
            stream.working = true;
            self.after(cost, Event::StreamWork(call));
        }
    }

    fn serve(&mut self, call: CallId, request: StreamRequest) {
        let Some(store) = self.calls.get(&call).map(|call| call.store) else {
            return;
        };
        let ready = self
            .stores
            .get(&store)
            .is_some_and(|node| node.raft_runs() && !node.engine_v2);
        match request {
            StreamRequest::Finish => self.serve_finish(call, store, ready),
            _ if !ready => self.end_stream(call, Code::Unavailable, NOT_READY),
            StreamRequest::UpdateLease { seconds } => self.serve_update(call, store, seconds),
            StreamRequest::WaitApply { regions } => self.serve_waits(call, store, &regions),
        }
    }

    fn serve_update(&mut self, call: CallId, store: StoreId, seconds: u64) {
        let now = self.now;
        let Some(node) = self.stores.get_mut(&store) else {
            return;
        };
        let was = node.lease.is_suspended(now);
        let valid = node.lease.update(seconds, now);
        if node.lease.is_suspended(now) {
            let end = node.lease.free_at();
            self.history.leased(store, was, now, end);
        }
        if let Some(record) = self.history.streams.get_mut(&call) {
            record.updates.push(Served { at: now, seconds });
        }
        let reply = StreamReply::LeaseUpdated {
            last_lease_is_valid: valid,
        };
        self.answer(call, Answer::Stream(reply));
        if !call.is_internal() {
            self.moment(Moment::Update);
        }
    }

    fn serve_finish(&mut self, call: CallId, store: StoreId, ready: bool) {
        let fault = self.take_finish_fault(call, store);
        if let Some(FinishFault::Late(delay)) = fault {
            self.strike_after(delay, Strike::FinishServed(call));
            return;
        }
        self.finish_now(call, store, ready, fault);
    }

    /// A Finish that lay about is served after all.
    pub(super) fn finish_served(&mut self, call: CallId) {
        let Some(Call { store, kind }) = self.calls.get(&call) else {
            return;
        };
        let (store, serving) = match kind {
            CallKind::Stream(stream) => (*store, stream.serving),
            _ => return,
        };
        let ready = self
            .stores
            .get(&store)
            .is_some_and(|node| node.raft_runs() && !node.engine_v2);
        if serving {
            self.finish_now(call, store, ready, None);
        }
    }

    fn take_finish_fault(&mut self, call: CallId, store: StoreId) -> Option<FinishFault> {
        if call.is_internal() {
            return None;
        }
        let fault = self.stores.get_mut(&store)?.finish_fault.take()?;
        let kind = match fault {
            FinishFault::Late(_) => FaultKind::FinishLate,
            FinishFault::SaysLapsed | FinishFault::OtherMessage => FaultKind::FinishWrong,
            FinishFault::NoAnswer | FinishFault::Silence => FaultKind::FinishLost,
        };
        // A Finish belongs to the release, whatever was noted.
        self.history.struck(kind, PhaseName::Release);
        Some(fault)
    }

    fn finish_now(
        &mut self,
        call: CallId,
        store: StoreId,
        ready: bool,
        fault: Option<FinishFault>,
    ) {
        let now = self.now;
        let mut valid = false;
        if ready && let Some(node) = self.stores.get_mut(&store) {
            valid = node.lease.finish(now);
        }
        if valid {
            self.history.lease_ended(store, now);
        }
        if let Some(record) = self.history.streams.get_mut(&call) {
            record.finish = Some((now, valid));
        }
        let reply = match fault {
            Some(FinishFault::NoAnswer | FinishFault::Silence) => None,
            Some(FinishFault::OtherMessage) => Some(wait_reply(u64::MAX, nobody(), Ok(()))),
            Some(FinishFault::SaysLapsed) => Some(StreamReply::LeaseUpdated {
                last_lease_is_valid: false,
            }),
            Some(FinishFault::Late(_)) | None => Some(StreamReply::LeaseUpdated {
                last_lease_is_valid: valid,
            }),
        };
        if fault == Some(FinishFault::Silence) {
            self.mute_stream(call);
        }
        if let Some(reply) = reply {
            self.answer(call, Answer::Stream(reply));
        }
        self.end_stream(call, Code::Ok, "");
        if !call.is_internal() {
            self.moment(Moment::Finish);
        }
    }

    fn serve_waits(&mut self, call: CallId, store: StoreId, targets: &[WaitTarget]) {
        let now = self.now;
        let cost = self.plan.timing.answer_cost;
        let mut ready = Vec::new();
        for &target in targets {
            let Some(node) = self.stores.get(&store) else {
                return;
            };
            if !node.lease.is_suspended(now) {
                return self.end_stream(call, Code::FailedPrecondition, NO_LEASE);
            }
            let stuck = node.stuck_until;
            if let Some(record) = self.history.streams.get_mut(&call) {
                record.first_wait.get_or_insert(now);
            }
            self.history.wait_sent(call, target.region_id);
            let Some(stream) = self.stream_mut(call) else {
                return;
            };
            let entry = stream.entries;
            stream.entries += 1;
            if now < stuck {
                self.queue.push(stuck, Event::LateWait(call, entry, target));
            } else if let Some(result) = self.ask_peer(call, entry, target) {
                ready.push(wait_reply(entry, target, result));
            }
        }
        // The first one comes first, the others from the back.
        if let Some(rest) = ready.get_mut(1..) {
            rest.reverse();
        }
        for (nth, reply) in (1..).zip(ready) {
            self.after(cost * nth, Event::Emit(call, reply));
        }
        if !call.is_internal() {
            self.moment(Moment::Wait);
        }
    }

    pub(super) fn late_wait(&mut self, call: CallId, entry: u64, target: WaitTarget) {
        if let Some(result) = self.ask_peer(call, entry, target) {
            let cost = self.plan.timing.answer_cost;
            self.after(cost, Event::Emit(call, wait_reply(entry, target, result)));
        }
    }

    fn ask_peer(
        &mut self,
        call: CallId,
        entry: u64,
        target: WaitTarget,
    ) -> Option<Result<(), ModelRegionError>> {
        let store = self.calls.get(&call)?.store;
        if let Some(error) = self.injected_error(store, target.region_id, false) {
            return Some(Err(error));
        }
        let node = self.stores.get_mut(&store)?;
        match node.peers.get_mut(&target.region_id) {
            Some(peer) => peer.wait(call, entry, target),
            None => {
                let region_id = target.region_id;
                let detail = RegionErrorDetail::RegionNotFound { region_id };
                let message = format!("region {region_id} not found");
                Some(Err(ModelRegionError::new(detail, message)))
            }
        }
    }

    /// A stream breaks between client and store.
    pub(super) fn break_stream(&mut self, call: CallId) {
        if let Some(stream) = self.stream_mut(call) {
            stream.serving = false;
            self.leave_store(call);
            let status = Status::new(Code::Unknown, "transport error: connection reset by peer");
            self.answer(call, Answer::End(status));
        }
    }

    /// Lets a stream swallow everything in both directions from now on.
    pub(super) fn mute_stream(&mut self, call: CallId) -> bool {
        self.stream_mut(call)
            .is_some_and(|stream| !std::mem::replace(&mut stream.swallows, true))
    }
}

/// A region that nobody has asked for.
fn nobody() -> WaitTarget {
    WaitTarget {
        region_id: RegionId(0),
        epoch: RegionEpoch::default(),
    }
}

pub(super) fn wait_reply(
    entry: u64,
    target: WaitTarget,
    result: Result<(), ModelRegionError>,
) -> StreamReply {
    StreamReply::WaitApplyDone {
        entry,
        target,
        result,
    }
}
