use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::RequestId;
use super::normal::Normalizer;
use crate::range::{Key, KeyRange};
use crate::region::{Claim, PeerId, RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

/// A region at one store: what the store claims and how far its proof is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Task {
    pub(super) range: KeyRange,
    pub(super) epoch: RegionEpoch,
    pub(super) peer_id: PeerId,
    pub(super) state: TaskState,
    /// When it was first asked, for the report.
    pub(super) first_asked: Option<Timestamp>,
    /// When it was asked, or looked at anew, last.
    pub(super) asked_at: Timestamp,
    /// The last listing in which the store claimed it with nothing pending.
    pub(super) seen: Option<RequestId>,
    /// Whether the store's last complete listing claimed it.
    pub(super) claimed: bool,
}

/// How far a region's proof is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TaskState {
    /// Known; nothing to do for it now.
    Idle,
    /// To be asked, as soon as the window has room.
    Ready,
    /// An earlier wait with another epoch is unanswered; asked after it.
    Blocked,
    /// The wait is in flight.
    Waiting,
    /// The wait is confirmed; to be read.
    Confirmed,
    /// The read is in flight.
    Reading(RequestId),
    /// Proven.
    Proven,
}

impl Task {
    /// Returns whether somebody is being asked, or about to be, so that its
    /// range needs nobody else.
    pub(super) fn is_live(&self) -> bool {
        self.claimed
            && matches!(
                self.state,
                TaskState::Ready
                    | TaskState::Blocked
                    | TaskState::Waiting
                    | TaskState::Confirmed
                    | TaskState::Reading(_)
            )
    }

    /// Returns whether the store's last complete listing claimed it.
    pub(super) const fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// Returns whether the time since it was asked counts.
    const fn is_asked(&self) -> bool {
        matches!(self.state, TaskState::Waiting | TaskState::Blocked)
    }

    fn normalize(&mut self, to: &mut Normalizer) {
        if !self.is_asked() {
            self.asked_at = Timestamp::ZERO;
        } else {
            to.instant(&mut self.asked_at);
        }
        let Self {
            range: _,
            epoch: _,
            peer_id: _,
            state,
            first_asked,
            asked_at: _,
            seen,
            claimed: _,
        } = self;
        if let TaskState::Reading(request) = state {
            to.number(request);
        }
        if let Some(at) = first_asked {
            to.forget(at);
        }
        if let Some(seen) = seen {
            to.past(seen);
        }
    }

    /// Returns whether the claim describes this very region.
    pub(super) fn matches(&self, claim: &Claim) -> bool {
        self.epoch == claim.region.epoch && self.range == claim.region.range
    }
}

/// The regions of one store.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Shelf {
    tasks: BTreeMap<RegionId, Task>,
    by_start: BTreeSet<(Key, RegionId)>,
    /// Waits that are in flight for an epoch that is no longer wanted.
    orphans: BTreeSet<RegionId>,
    /// Regions to ask; may hold ones that need it no more.
    pub(super) ready: VecDeque<RegionId>,
    /// Regions to read; likewise.
    pub(super) confirmed: VecDeque<RegionId>,
    /// When the waits in flight were sent, and those blocked by one began to
    /// be, oldest first; may hold ones that are answered.
    pub(super) asked: VecDeque<(Timestamp, RegionId)>,
    pub(super) waits: u32,
    pub(super) reads: u32,
    /// When its last region was proven.
    pub(super) last_proof: Option<Timestamp>,
}

impl Shelf {
    pub(super) fn get(&self, id: RegionId) -> Option<&Task> {
        self.tasks.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: RegionId) -> Option<&mut Task> {
        self.tasks.get_mut(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RegionId, &Task)> {
        self.tasks.iter().map(|(id, task)| (*id, task))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (RegionId, &mut Task)> {
        self.tasks.iter_mut().map(|(id, task)| (*id, task))
    }

    /// Returns the ids of the tasks that overlap `range`. Claims of one store
    /// hardly ever overlap each other, so the way back from the start ends at
    /// the first one that ends before it.
    pub(super) fn overlapping(&self, range: &KeyRange) -> Vec<RegionId> {
        let from = (range.start().clone(), RegionId(0));
        let mut ids = Vec::new();
        for (_, id) in self.by_start.range(..from.clone()).rev() {
            let Some(task) = self.tasks.get(id) else {
                continue;
            };
            if task.range.overlaps(range) {
                ids.push(*id);
            } else if task.claimed {
                break;
            }
        }
        ids.extend(
            self.by_start
                .range(from..)
                .take_while(|(start, _)| range.end().is_after(start))
                .map(|(_, id)| *id),
        );
        ids
    }

    /// Removes a task. A wait of it that is in flight keeps its slot.
    pub(super) fn remove(&mut self, id: RegionId) -> Option<Task> {
        let task = self.tasks.remove(&id)?;
        self.by_start.remove(&(task.range.start().clone(), id));
        match task.state {
            TaskState::Waiting => {
                self.orphans.insert(id);
            }
            TaskState::Reading(_) => self.reads = self.reads.saturating_sub(1),
            _ => {}
        }
        Some(task)
    }

    /// Returns the ids in the order of the start keys.
    pub(super) fn ids_by_start(&self) -> Vec<RegionId> {
        self.by_start.iter().map(|(_, id)| *id).collect()
    }

    /// Notes that a region's wait was answered.
    pub(super) fn end_wait(&mut self, id: RegionId) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.state = TaskState::Idle;
            self.waits = self.waits.saturating_sub(1);
        }
    }

    /// Lets a region be read, since its wait is confirmed.
    pub(super) fn make_confirmed(&mut self, id: RegionId) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.state = TaskState::Confirmed;
            self.confirmed.push_back(id);
        }
    }

    /// Notes that a region's read was answered.
    pub(super) fn end_read(&mut self, id: RegionId) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.state = TaskState::Idle;
            self.reads = self.reads.saturating_sub(1);
        }
    }

    /// Puts a claim on the shelf in place of what was known of that region.
    pub(super) fn put(&mut self, claim: &Claim, peer_id: PeerId) {
        let id = claim.region.id;
        self.remove(id);
        self.by_start
            .insert((claim.region.range.start().clone(), id));
        self.tasks.insert(
            id,
            Task {
                range: claim.region.range.clone(),
                epoch: claim.region.epoch,
                peer_id,
                state: TaskState::Idle,
                first_asked: None,
                asked_at: Timestamp::ZERO,
                seen: None,
                claimed: true,
            },
        );
    }

    /// Lets an idle or proven task be asked (again).
    pub(super) fn make_ready(&mut self, id: RegionId, now: Timestamp) {
        let blocked = self.orphans.contains(&id);
        if let Some(task) = self.tasks.get_mut(&id) {
            if blocked {
                task.state = TaskState::Blocked;
                task.asked_at = now;
                self.asked.push_back((now, id));
            } else {
                task.state = TaskState::Ready;
                self.ready.push_back(id);
            }
        }
    }

    /// Takes in an answer for a wait that nobody wants any more, whatever it
    /// says: at most one wait is in flight per region. Returns whether there was
    /// one.
    pub(super) fn settle_orphan(&mut self, id: RegionId, now: Timestamp) -> bool {
        if !self.orphans.remove(&id) {
            return false;
        }
        self.waits = self.waits.saturating_sub(1);
        if self
            .tasks
            .get(&id)
            .is_some_and(|task| task.state == TaskState::Blocked)
        {
            self.make_ready(id, now);
        }
        true
    }

    /// Returns when the oldest wait in flight was sent.
    pub(super) fn oldest_wait(&self) -> Option<Timestamp> {
        self.asked.front().map(|(sent, _)| *sent)
    }

    /// Forgets the waits at the front that are answered.
    pub(super) fn trim_asked(&mut self) {
        while let Some((sent, id)) = self.asked.front() {
            let waiting = self.tasks.get(id).is_some_and(|task| {
                matches!(task.state, TaskState::Waiting | TaskState::Blocked)
                    && task.asked_at == *sent
            });
            if waiting {
                break;
            }
            self.asked.pop_front();
        }
    }

    /// Returns one region whose wait is in flight, if it is the only one.
    pub(super) fn only_wait(&self) -> Option<RegionId> {
        if self.waits != 1 || !self.orphans.is_empty() {
            return None;
        }
        self.tasks
            .iter()
            .find(|(_, task)| task.state == TaskState::Waiting)
            .map(|(id, _)| *id)
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            tasks,
            by_start: _,
            orphans: _,
            ready,
            confirmed,
            asked,
            waits: _,
            reads: _,
            last_proof,
        } = self;
        asked.retain(|(sent, id)| {
            tasks
                .get(id)
                .is_some_and(|task| task.is_asked() && task.asked_at == *sent)
        });
        let in_state = |id: &RegionId, state| tasks.get(id).is_some_and(|task| task.state == state);
        ready.retain(|id| in_state(id, TaskState::Ready));
        confirmed.retain(|id| in_state(id, TaskState::Confirmed));
        for (sent, _) in asked {
            to.instant(sent);
        }
        for task in tasks.values_mut() {
            task.normalize(to);
        }
        if let Some(at) = last_proof {
            to.forget(at);
        }
    }

    /// Checks the counters against the tasks.
    pub(super) fn check(&self, store: StoreId, window: u32) -> Result<(), String> {
        let count = |test: fn(&TaskState) -> bool| {
            self.tasks.values().filter(|task| test(&task.state)).count()
        };
        let waits = count(|state| *state == TaskState::Waiting) + self.orphans.len();
        if waits != self.waits as usize {
            return Err(format!(
                "store {store}: {waits} waits in flight, {} counted",
                self.waits
            ));
        }
        let reads = count(|state| matches!(state, TaskState::Reading(_)));
        if reads != self.reads as usize {
            return Err(format!(
                "store {store}: {reads} reads in flight, {} counted",
                self.reads
            ));
        }
        if self.waits > window || self.reads > window {
            return Err(format!(
                "store {store}: more in flight than the window of {window} (R7)"
            ));
        }
        if self.by_start.len() != self.tasks.len() {
            return Err(format!(
                "store {store}: the index by start key does not fit the regions"
            ));
        }
        Ok(())
    }
}
