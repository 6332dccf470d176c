use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::cluster::StreamRequest;
use crate::region::StoreId;
use crate::sim::fault::log_uniform;
use crate::sim::model::{Answer, CallId, Cluster, Request};

impl Cluster {
    /// Another client prepares some or all of the stores.
    pub(super) fn begin_rival(&mut self) -> bool {
        let all = self.rng.random_ratio(1, 2);
        let stores: Vec<StoreId> = self
            .stores
            .values()
            .filter(|node| node.info.takes_part())
            .map(|node| node.info.id)
            .collect();
        for store in stores {
            if all || self.rng.random_ratio(1, 2) {
                let call = CallId(self.next_call);
                self.next_call += 1;
                self.take_in(call, Request::OpenStream { store });
            }
        }
        true
    }

    /// A rival's stream was answered: first it takes a lease, then it ends it
    /// or goes away.
    pub(in crate::sim::model) fn rival_hears(&mut self, call: CallId, answer: Answer) {
        if !matches!(answer, Answer::Opened) {
            return;
        }
        let seconds = self.rng.random_range(1..40);
        let request = StreamRequest::UpdateLease { seconds };
        self.take_in(call, Request::StreamSend(request));
        let delay = Duration::from_micros(log_uniform(&mut self.rng, 1_000, 10_000_000));
        self.strike_after(delay, Strike::RivalEnds(call));
    }

    pub(super) fn rival_ends(&mut self, call: CallId) {
        let request = if self.rng.random_ratio(2, 3) {
            Request::StreamSend(StreamRequest::Finish)
        } else {
            Request::Cancel
        };
        if self.calls.contains_key(&call) {
            self.take_in(call, request);
        }
    }
}
