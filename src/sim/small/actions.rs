//! What can happen in a state.

use super::action::Action;
use super::bounds::{Bounds, Fault};
use super::call::Ask;
use super::raft::Group;
use super::state::Small;
use super::step::place;
use super::store::{Stream, StreamState, Up};
use crate::progress::PhaseName;

impl Small {
    /// Returns what can happen, within the bounds.
    pub(super) fn possible(&self, bounds: &Bounds) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_over = self.machine.outcome().is_some()
            || self.judge.attempt > bounds.attempts
            || self.judge.broken.is_some();
        if is_over {
            return actions;
        }
        self.add_calls(bounds, &mut actions);
        self.add_streams(bounds, &mut actions);
        for group in &self.groups {
            self.add_group(group, bounds, &mut actions);
        }
        if self.frozen.is_some() {
            actions.push(Action::ThawPd);
        }
        if self.machine.phase() == PhaseName::Hold {
            actions.push(Action::Finish);
        }
        if self.timeouts < bounds.timeouts || !self.paused.is_zero() {
            actions.push(Action::Timeout);
        }
        self.add_store_faults(bounds, &mut actions);
        // What costs more faults than are left does not happen.
        actions.retain(|action| {
            action
                .fault()
                .is_none_or(|fault| !self.is_fault(*action) || self.may(bounds, fault))
        });
        actions
    }

    fn add_calls(&self, bounds: &Bounds, actions: &mut Vec<Action>) {
        let is_calm = self.are_regions_calm(bounds);
        for (at, call) in self.calls.iter().enumerate() {
            // Equal calls are answered alike.
            let is_twin = at > 0
                && self.calls.get(at - 1).is_some_and(|other| {
                    (&other.ask, &other.reply, other.is_old)
                        == (&call.ask, &call.reply, call.is_old)
                });
            if is_twin && call.is_old {
                continue;
            }
            let is_served_late = matches!(call.ask, Ask::Stores | Ask::Scan(..));
            if call.reply.is_none() && !is_served_late && !is_calm {
                actions.push(Action::Serve(at));
            } else if !call.is_old || self.may(bounds, Fault::Late) {
                actions.push(Action::Answer(at));
            }
            if !call.is_old && call.reply.is_none() {
                actions.push(Action::Fail(at));
                if matches!(call.ask, Ask::Read(..)) {
                    actions.push(Action::RefuseRead(at));
                }
            }
            if let Ask::Scan(..) = call.ask {
                for region in 0..self.groups.len() as u8 {
                    actions.push(Action::AnswerWithGap(at, region));
                    actions.push(Action::AnswerLeaderless(at, region));
                }
            }
        }
    }

    fn add_streams(&self, bounds: &Bounds, actions: &mut Vec<Action>) {
        for (store, stream) in self.streams() {
            let serves_late = self.serves_late(store, stream, bounds);
            match stream.state {
                StreamState::Opening => {
                    actions.push(Action::Open(store));
                    actions.push(Action::FailDial(store));
                    continue;
                }
                StreamState::Open => {
                    actions.push(Action::Cut(store));
                    actions.push(Action::Rival(store));
                    actions.push(Action::RivalLease(store));
                }
                StreamState::Ended => {}
            }
            if !stream.down.is_empty() || (serves_late && !stream.up.is_empty()) {
                actions.push(Action::Deliver(store));
            }
            if !stream.up.is_empty() && !serves_late {
                actions.push(Action::ServeStream(store));
            }
            if self.next_is_wait(place(store)) {
                actions.push(Action::RefuseWait(store));
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            for (number, stream) in node.streams.iter().enumerate() {
                if is_late(stream) {
                    actions.push(Action::DeliverLate(at as u64 + 1, number));
                }
            }
        }
    }

    /// Returns whether it does not matter when the next request of a stream is
    /// taken in, so that this may as well happen when its answer arrives.
    fn serves_late(&self, store: u64, stream: &Stream, bounds: &Bounds) -> bool {
        let has_lease = self
            .nodes
            .get(place(store))
            .is_some_and(|node| node.lease.is_some());
        self.are_leases_calm(bounds)
            && match stream.up.front() {
                None => false,
                Some(Up::Lease(_)) => has_lease || self.are_proposals_over(bounds),
                Some(Up::Wait(_)) => self.are_regions_calm(bounds),
                Some(Up::Finish(_)) => self.are_proposals_over(bounds),
            }
    }

    fn add_group(&self, group: &Group, bounds: &Bounds, actions: &mut Vec<Action>) {
        let id = group.id;
        let stores = 1..=self.nodes.len() as u64;
        if group.cut.is_some() {
            actions.push(Action::Heal(id));
        }
        if group.is_gone {
            return;
        }
        let Some(leader) = group.leader else {
            let candidates = stores.filter(|store| group.can_be_elected(*store as u8 - 1));
            actions.extend(candidates.map(|store| Action::Elect(id, store)));
            return;
        };
        if group.can_commit() {
            actions.push(Action::Commit(id));
        }
        if group.can_apply() {
            actions.push(Action::Apply(id));
        }
        if group.merging.is_some()
            && let Some(target) = self.merge_target(id).and_then(|id| self.group(id))
            && target.merging.is_none()
            && target.leader.is_some()
        {
            actions.push(Action::CommitMerge(id));
        }
        for store in stores {
            let at = store as u8 - 1;
            if at != leader && group.can_be_elected(at) {
                actions.push(Action::Elect(id, store));
            }
            if group.can_replace_leader(at) {
                actions.push(Action::CutOff(id, store));
            }
        }
        let is_suspended = self
            .nodes
            .get(usize::from(leader))
            .is_some_and(|node| node.lease.is_some());
        if !is_suspended && group.command.is_none() && group.merging.is_none() {
            self.add_proposals(group, bounds, actions);
        }
    }

    fn add_proposals(&self, group: &Group, bounds: &Bounds, actions: &mut Vec<Action>) {
        let id = group.id;
        actions.push(Action::Propose(id, Fault::Ingest));
        if group.to - group.from > 1 && self.groups.len() < usize::from(bounds.regions) + 1 {
            actions.push(Action::Propose(id, Fault::Split));
        }
        let target = self.merge_target(id).and_then(|id| self.group(id));
        if target.is_some_and(|target| target.merging.is_none() && target.command.is_none()) {
            actions.push(Action::Propose(id, Fault::Merge));
        }
    }

    fn add_store_faults(&self, bounds: &Bounds, actions: &mut Vec<Action>) {
        if self.faults() >= bounds.faults {
            return;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let store = at as u64 + 1;
            actions.push(Action::Restart(store));
            if node.lease.is_some() {
                actions.push(Action::LiftLease(store));
            }
        }
        if self.paused.is_zero() {
            actions.push(Action::Pause);
        }
        if self.frozen.is_none() {
            actions.push(Action::FreezePd);
        }
        actions.push(Action::Cancel);
        actions.push(Action::LoseLock);
    }
}

fn is_late(stream: &Stream) -> bool {
    stream.is_closed && !stream.down.is_empty()
}
