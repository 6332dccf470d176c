//! What comes of each action.

use std::time::Duration;

use super::action::Action;
use super::bounds::Fault;
use super::raft::{Command, CommandKind};
use super::sight::Sight;
use super::state::Small;
use super::store::{Down, LEASE, Lease, StreamState};
use crate::error::FailureKind;
use crate::machine::Event;
use crate::progress::PhaseName;
use crate::region::RegionErrorKind as E;

/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(6);

impl Small {
    /// Does `action`; the state has to be brought into normal form afterwards.
    pub(super) fn act(&mut self, action: Action) {
        if let Some(fault) = action.fault().filter(|_| self.is_fault(action)) {
            self.spend(fault);
        }
        match action {
            Action::Serve(call) => self.serve_call(call),
            Action::Answer(call) => self.answer(call, None),
            Action::AnswerWithGap(call, region) | Action::AnswerLeaderless(call, region) => {
                self.answer(call, Some((action.fault(), region)));
            }
            Action::Fail(call) => self.fail_call(call),
            Action::RefuseRead(call) => self.refuse_read(call),
            Action::Open(store) => self.open(place(store)),
            Action::FailDial(store) => self.fail_dial(place(store)),
            Action::ServeStream(store) => self.serve_stream(place(store)),
            Action::RefuseWait(store) => self.refuse_wait(place(store)),
            Action::Deliver(store) => self.deliver_present(place(store)),
            Action::DeliverLate(store, stream) => self.deliver_late(place(store), stream),
            Action::Timeout => self.time_out(),
            Action::Pause => {
                self.pass(PAUSE);
                self.paused += PAUSE;
            }
            Action::Finish => {
                self.judge.was_kept = Some(!self.judge.has_break.contains(&true));
                self.input(Some(Event::FinishRequested));
            }
            Action::Cancel => self.cancel(),
            Action::LoseLock => self.input(Some(Event::LockLost)),
            Action::FreezePd => self.frozen = Some(self.pd_view()),
            Action::ThawPd => self.frozen = None,
            _ => self.act_in_cluster(action),
        }
    }

    /// An election for want of a leader is no fault.
    pub(super) fn is_fault(&self, action: Action) -> bool {
        match action {
            Action::Elect(region, _) => self
                .group(region)
                .is_some_and(|group| group.leader.is_some()),
            _ => true,
        }
    }

    fn act_in_cluster(&mut self, action: Action) {
        match action {
            Action::Commit(region) => self.change(region, |group| group.commit()),
            Action::Apply(region) => self.apply(region),
            Action::Elect(region, store) => {
                self.leave_leader(region);
                self.change(region, |group| group.elect(place(store) as u8));
            }
            Action::CutOff(region, store) => {
                self.change(region, |group| group.cut_off(place(store) as u8));
            }
            Action::Heal(region) => self.heal(region),
            Action::CommitMerge(region) => self.commit_merge(region),
            Action::Propose(region, fault) => self.propose(region, fault),
            Action::Restart(store) => self.restart(place(store)),
            Action::Cut(store) => self.end_streams(place(store), FailureKind::Transport),
            Action::Rival(store) => self.end_streams(place(store), FailureKind::Superseded),
            Action::RivalLease(store) => {
                let store = place(store);
                self.end_streams(store, FailureKind::Superseded);
                self.lift_lease(store);
                if let Some(node) = self.nodes.get_mut(store) {
                    node.lease = Some(Lease {
                        left: LEASE,
                        is_ours: false,
                    });
                }
            }
            Action::LiftLease(store) => self.lift_lease(place(store)),
            _ => {}
        }
    }

    fn open(&mut self, store: usize) {
        let Some(stream) = self.nodes.get_mut(store).and_then(|node| node.present()) else {
            return;
        };
        stream.state = StreamState::Open;
        let stream = stream.number;
        self.input(Some(Event::StreamOpened { stream }));
    }

    fn fail_dial(&mut self, store: usize) {
        let Some(stream) = self.nodes.get_mut(store).and_then(|node| node.present()) else {
            return;
        };
        stream.state = StreamState::Ended;
        stream.has_ended = true;
        let number = stream.number;
        self.end_event(number, FailureKind::Unavailable);
    }

    fn refuse_wait(&mut self, store: usize) {
        let busy = Err(E::ServerIsBusy {
            backoff: Duration::ZERO,
        });
        if let Some(stream) = self.nodes.get_mut(store).and_then(|node| node.present())
            && let Some(super::store::Up::Wait(target)) = stream.up.pop_front()
        {
            stream.down.push_back(Down::Wait(target, busy));
        }
    }

    fn cancel(&mut self) {
        let sight = match self.machine.phase() {
            PhaseName::Connect => Sight::CancelledInConnect,
            PhaseName::Suspend => Sight::CancelledInSuspend,
            PhaseName::WaitApply => Sight::CancelledInWaitApply,
            PhaseName::Verify => Sight::CancelledInVerify,
            PhaseName::Hold => Sight::CancelledInHold,
            _ => Sight::CancelledInRelease,
        };
        self.judge.sights.see(sight);
        self.input(Some(Event::CancelRequested));
    }

    fn time_out(&mut self) {
        self.timeouts += 1;
        if let Some(at) = self.machine.poll_timeout() {
            let time = at.saturating_duration_since(self.now());
            self.pass(time);
            self.paused += time;
        }
        self.input(None);
    }

    /// Time passes in the cluster.
    fn pass(&mut self, time: Duration) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let Some(lease) = &mut node.lease else {
                continue;
            };
            lease.left = lease.left.saturating_sub(time);
            if lease.left.is_zero() {
                node.lease = None;
                self.judge.lease_ended(at);
            }
        }
    }

    fn change(&mut self, region: u8, change: impl FnOnce(&mut super::raft::Group)) {
        let command = |small: &Self| {
            let group = small.group(region);
            group.and_then(|group| group.command)
        };
        let before = command(self);
        if let Some(group) = self.group_mut(region) {
            change(group);
        }
        let is_lost = before.is_some() && command(self).is_none();
        if is_lost && self.judge.has_waited {
            self.judge.sights.see(Sight::LostUnderLease);
        }
    }

    fn apply(&mut self, region: u8) {
        let Some(group) = self.group_mut(region) else {
            return;
        };
        let leader = group.leader;
        // Before the log is dropped, since waits count in it.
        let index = group.last_applicable();
        let command = group.apply();
        if command.is_some() && self.judge.has_waited {
            self.judge.sights.see(Sight::AppliedUnderLease);
        }
        if let Some(node) = leader.and_then(|leader| self.nodes.get_mut(usize::from(leader))) {
            node.end_waits(region, Ok(()), |wait| wait.index <= index);
        }
        if command == Some(CommandKind::Split) {
            let id = self.next_region;
            self.next_region += 1;
            if let Some(group) = self.group_mut(region) {
                let left = group.split_off(id);
                self.groups.push(left);
            }
        }
    }

    /// The leader steps down: the term of its waits is over.
    fn leave_leader(&mut self, region: u8) {
        let leader = self.group(region).and_then(|group| group.leader);
        if let Some(node) = leader.and_then(|leader| self.nodes.get_mut(usize::from(leader))) {
            node.end_waits(region, Err(E::StaleCommand), |_| true);
        }
    }

    fn heal(&mut self, region: u8) {
        let cut = self.group(region).and_then(|group| group.cut);
        if let Some(node) = cut.and_then(|cut| self.nodes.get_mut(usize::from(cut.store))) {
            node.end_waits(region, Err(E::StaleCommand), |_| true);
        }
        self.change(region, |group| group.heal());
        self.groups
            .retain(|group| !group.is_gone || group.cut.is_some());
    }

    /// The target takes the source in. Waits for the source count as done.
    fn commit_merge(&mut self, region: u8) {
        let Some(source) = self.group(region).cloned() else {
            return;
        };
        let Some(target) = self.merge_target(region) else {
            return;
        };
        if let Some(target) = self.group_mut(target) {
            target.from = target.from.min(source.from);
            target.to = target.to.max(source.to);
            target.version = target.version.max(source.version) + 1;
        }
        let cut = source.cut.map(|cut| usize::from(cut.store));
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if Some(at) != cut {
                node.end_waits(region, Ok(()), |_| true);
            }
        }
        if let Some(group) = self.group_mut(region) {
            group.is_gone = true;
            group.merging = None;
        }
        self.groups
            .retain(|group| !group.is_gone || group.cut.is_some());
        if self.judge.has_waited {
            self.judge.sights.see(Sight::MergedUnderLease);
        }
    }

    /// Returns the neighbor that a region merges into.
    pub(super) fn merge_target(&self, region: u8) -> Option<u8> {
        let source = self.group(region)?;
        let mut alive = self.groups.iter().filter(|group| !group.is_gone);
        alive
            .find(|group| group.id != region && group.from == source.to)
            .or_else(|| {
                let mut alive = self.groups.iter().filter(|group| !group.is_gone);
                alive.find(|group| group.id != region && group.to == source.from)
            })
            .map(|group| group.id)
    }

    fn propose(&mut self, region: u8, fault: Fault) {
        let kind = match fault {
            Fault::Split => CommandKind::Split,
            Fault::Merge => CommandKind::Merge,
            _ => CommandKind::Ingest,
        };
        let is_late = self.judge.has_waited;
        if let Some(group) = self.group_mut(region) {
            group.propose(Command { kind, is_late });
        }
    }

    fn restart(&mut self, store: usize) {
        self.lift_lease(store);
        self.end_streams(store, FailureKind::Unavailable);
        if let Some(node) = self.nodes.get_mut(store) {
            node.waits.clear();
        }
        for group in &mut self.groups {
            if group.leader.map(usize::from) == Some(store) {
                group.leader = None;
            }
        }
    }

    fn end_streams(&mut self, store: usize, kind: FailureKind) {
        if let Some(node) = self.nodes.get_mut(store) {
            node.end_streams(kind);
        }
    }
}

/// Returns the place of a store that is counted from 1.
pub(super) fn place(store: u64) -> usize {
    store.saturating_sub(1) as usize
}
