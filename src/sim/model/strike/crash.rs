use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::region::StoreId;
use crate::sim::fault::{FaultKind, log_uniform};
use crate::sim::model::calls::{Call, CallKind};
use crate::sim::model::node::{FinishFault, Life};
use crate::sim::model::{Answer, CallId, Cluster, Code, Status};

/// How long it takes at the most until a client's transport finds out that the
/// other end is gone: a ping each 10 s, answered within 3 s.
const KEEPALIVE: u64 = 13_000_000;

impl Cluster {
    /// A store's machine dies and comes back without its lease; nobody tells the
    /// clients, whose calls are found dead only later.
    pub(super) fn begin_crash(&mut self) -> bool {
        let Some(store) = self.any_store(|node| node.life == Life::Up) else {
            return false;
        };
        let calls = self.calls_at(store);
        for &call in &calls {
            if let Some(Call {
                kind: CallKind::Stream(stream),
                ..
            }) = self.calls.get_mut(&call)
            {
                stream.swallows = true;
            }
        }
        let noticed = Duration::from_micros(log_uniform(&mut self.rng, 10_000, KEEPALIVE));
        self.strike_after(noticed, Strike::FoundDead(calls));
        let down = self.lasting(1);
        let coming = Duration::from_micros(log_uniform(&mut self.rng, 10, 500_000));
        self.set_life(store, Life::Down);
        self.strike_after(down, Strike::Live(store, Life::ServiceOnly));
        self.strike_after(down + coming, Strike::Live(store, Life::Up));
        true
    }

    /// A client's transport finds out that its calls are dead.
    pub(super) fn found_dead(&mut self, calls: &[CallId]) {
        for &call in calls {
            let swallows = matches!(
                self.calls.get(&call),
                Some(Call { kind: CallKind::Stream(stream), .. }) if stream.swallows
            );
            if swallows {
                let status = Status::new(Code::Unavailable, "keepalive ping timed out");
                self.answer_muted(call, Answer::End(status));
            }
        }
    }

    /// Decides what happens to the next Finish at a store. It strikes when a
    /// client sends one.
    pub(super) fn arm_finish(&mut self, kind: FaultKind) {
        let fault = match kind {
            FaultKind::FinishLate => {
                let late = log_uniform(&mut self.rng, 100_000, 30_000_000);
                FinishFault::Late(Duration::from_micros(late))
            }
            FaultKind::FinishWrong if self.rng.random_ratio(1, 2) => FinishFault::SaysLapsed,
            FaultKind::FinishWrong => FinishFault::OtherMessage,
            _ if self.rng.random_ratio(1, 2) => FinishFault::NoAnswer,
            _ => FinishFault::Silence,
        };
        let store: Option<StoreId> = self.any_store(|node| node.finish_fault.is_none());
        if let Some(node) = store.and_then(|store| self.stores.get_mut(&store)) {
            node.finish_fault = Some(fault);
        }
    }
}
