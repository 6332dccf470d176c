use std::collections::VecDeque;

use super::{Answer, CallId, Request, Status};
use crate::sim::fault::FaultPlan;
use crate::sim::layout::Layout;
use crate::time::Timestamp;

/// A cluster: PD, the stores, and what is under way between them.
#[derive(Debug)]
pub struct Cluster {
    layout: Layout,
    answers: VecDeque<(CallId, Answer)>,
}

impl Cluster {
    /// Starts the cluster that `layout` describes at rest at `start`. The same
    /// arguments and the same inputs always give the same answers.
    pub fn new(layout: &Layout, _faults: FaultPlan, _seed: u64, _start: Timestamp) -> Self {
        Self {
            layout: layout.clone(),
            answers: VecDeque::new(),
        }
    }

    /// Takes in what a client asks.
    pub fn handle_request(&mut self, call: CallId, request: Request, _now: Timestamp) {
        let answer = match request {
            Request::ListStores => Answer::Stores(self.layout.stores.clone()),
            _ => Answer::End(Status::ok()),
        };
        self.answers.push_back((call, answer));
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, _now: Timestamp) {}

    /// Returns the next answer that reaches its client now.
    pub fn poll_answer(&mut self) -> Option<(CallId, Answer)> {
        self.answers.pop_front()
    }

    /// Returns the next instant at which [`Cluster::handle_timeout`] has
    /// something to do.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
}
