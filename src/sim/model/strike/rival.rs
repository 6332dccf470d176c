use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::cluster::StreamRequest;
use crate::region::StoreId;
use crate::sim::fault::log_uniform;
use crate::sim::model::calls::{Call, CallKind, StreamCall};
use crate::sim::model::{Answer, CallId, Cluster, Request};

impl Cluster {
    /// Another client prepares some or all of the stores; `rounds` times.
    pub(super) fn begin_rival(&mut self, rounds: u32) -> bool {
        let all = self.rng.random_ratio(1, 2);
        let stores: Vec<StoreId> = self
            .stores
            .values()
            .filter(|node| node.info.takes_part())
            .map(|node| node.info.id)
            .collect();
        for store in stores {
            if all || self.rng.random_ratio(1, 2) {
                self.rival_opens(store, rounds);
            }
        }
        true
    }

    /// A rival that takes, finishes and takes again.
    pub(super) fn begin_rival_again(&mut self) -> bool {
        let rounds = self.rng.random_range(2..=4);
        self.begin_rival(rounds)
    }

    pub(super) fn rival_opens(&mut self, store: StoreId, rounds: u32) {
        let call = CallId(self.next_call);
        self.next_call += 1;
        if rounds > 1 {
            self.triggers.rounds_left.insert(call, (store, rounds - 1));
        }
        self.take_in(call, Request::OpenStream { store });
    }

    /// A rival's stream was answered: first it takes a lease, then it ends it
    /// or goes away.
    pub(in crate::sim::model) fn rival_hears(&mut self, call: CallId, answer: Answer) {
        let lingers = matches!(
            self.calls.get(&call),
            Some(Call { kind: CallKind::Stream(stream), .. }) if stream.lingers.is_some()
        );
        if !matches!(answer, Answer::Opened) || lingers {
            return;
        }
        let seconds = self.rng.random_range(1..40);
        let request = StreamRequest::UpdateLease { seconds };
        self.take_in(call, Request::StreamSend(request));
        let delay = Duration::from_micros(log_uniform(&mut self.rng, 1_000, 10_000_000));
        self.strike_after(delay, Strike::RivalEnds(call));
    }

    pub(super) fn rival_ends(&mut self, call: CallId) {
        let again = self.triggers.rounds_left.remove(&call);
        let request = if again.is_some() || self.rng.random_ratio(2, 3) {
            Request::StreamSend(StreamRequest::Finish)
        } else {
            Request::Cancel
        };
        if self.calls.contains_key(&call) {
            self.take_in(call, request);
        }
        // Also when its stream was taken away meanwhile.
        if let Some((store, rounds)) = again {
            let delay = Duration::from_micros(log_uniform(&mut self.rng, 10_000, 10_000_000));
            self.strike_after(delay, Strike::RivalOpens(store, rounds));
        }
    }

    /// A rival has the stream and the lease of a store before our client comes.
    /// When that takes the stream away, a Finish lies at the store and is served
    /// only later, so that it lifts a lease that is ours by then.
    ///
    /// A real store serves it within moments; the run must not rest on that.
    pub(super) fn begin_late_finish(&mut self) -> bool {
        let calls = &self.calls;
        let ours = |call: Option<CallId>| {
            call.is_some_and(|call| calls.contains_key(&call) && !call.is_internal())
        };
        let free: Vec<StoreId> = self
            .stores
            .values()
            .filter(|node| node.info.takes_part() && node.raft_runs() && !ours(node.stream))
            .map(|node| node.info.id)
            .collect();
        if free.is_empty() {
            return false;
        }
        let Some(&store) = free.get(self.rng.random_range(0..free.len())) else {
            return false;
        };
        let call = CallId(self.next_call);
        self.next_call += 1;
        let lingers = Duration::from_micros(log_uniform(&mut self.rng, 10_000, 10_000_000));
        let stream = StreamCall {
            lingers: Some(lingers),
            ..StreamCall::default()
        };
        let kind = CallKind::Stream(Box::new(stream));
        self.calls.insert(call, Call { store, kind });
        self.stream_opened(call, store);
        let (now, seconds) = (self.now, self.rng.random_range(1..60));
        if let Some(node) = self.stores.get_mut(&store) {
            let was = node.lease.is_suspended(now);
            node.lease.update(seconds, now);
            let end = node.lease.free_at();
            self.history.leased(store, was, now, end);
        }
        true
    }
}
