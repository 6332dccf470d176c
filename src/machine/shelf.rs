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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::EndKey;
    use crate::region::Region;

    const STORE: StoreId = StoreId(1);
    const WINDOW: u32 = 8;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn keys(from: u8, to: u8) -> KeyRange {
        let end = EndKey::Bounded(Key::from(&[to]));
        KeyRange::new(Key::from(&[from]), end).expect("not empty")
    }

    fn claim(id: u64, from: u8, to: u8) -> Claim {
        Claim {
            region: Region {
                id: RegionId(id),
                range: keys(from, to),
                epoch: RegionEpoch {
                    conf_ver: 1,
                    version: 1,
                },
                peers: Vec::new(),
            },
            has_pending_admin: false,
        }
    }

    fn shelf(claims: &[Claim]) -> Shelf {
        let mut shelf = Shelf::default();
        for claim in claims {
            shelf.put(claim, PeerId(1));
        }
        shelf
    }

    /// As if the region's wait had been sent.
    fn send(shelf: &mut Shelf, id: u64, now: Timestamp) {
        let id = RegionId(id);
        let task = shelf.get_mut(id).expect("known");
        task.state = TaskState::Waiting;
        task.asked_at = now;
        shelf.asked.push_back((now, id));
        shelf.waits += 1;
    }

    fn state(shelf: &Shelf, id: u64) -> Option<TaskState> {
        shelf.get(RegionId(id)).map(|task| task.state)
    }

    #[test]
    fn a_claim_matches_only_with_epoch_and_range() {
        let shelf = shelf(&[claim(1, 2, 4)]);
        let task = shelf.get(RegionId(1)).expect("known");
        assert!(task.matches(&claim(1, 2, 4)));
        assert!(!task.matches(&claim(1, 2, 5)));
        let mut other = claim(1, 2, 4);
        other.region.epoch.conf_ver = 2;
        assert!(!task.matches(&other));
    }

    #[test]
    fn what_overlaps_is_found_also_behind_what_is_no_longer_claimed() {
        let mut shelf = shelf(&[
            claim(1, 1, 2),
            claim(2, 2, 9),
            claim(3, 3, 4),
            claim(4, 9, 10),
        ]);
        // A leftover that ends early does not hide the long one before it.
        shelf.get_mut(RegionId(3)).expect("known").claimed = false;
        let found = |from, to| -> Vec<u64> {
            let ids = shelf.overlapping(&keys(from, to));
            ids.into_iter().map(|id| id.0).collect()
        };
        assert_eq!(found(5, 6), [2]);
        assert_eq!(found(3, 9), [2, 3]);
        assert_eq!(found(8, 10), [2, 4]);
        assert_eq!(found(10, 11), [0_u64; 0]);
        assert_eq!((shelf.len(), shelf.ids_by_start().len()), (4, 4));
    }

    #[test]
    fn a_wait_that_nobody_wants_keeps_its_slot_until_it_is_answered() {
        let mut shelf = shelf(&[claim(1, 1, 2), claim(2, 2, 3)]);
        send(&mut shelf, 1, at(1));
        shelf.put(&claim(1, 1, 3), PeerId(1));
        assert_eq!((shelf.waits, state(&shelf, 1)), (1, Some(TaskState::Idle)));
        shelf.check(STORE, WINDOW).expect("sound");
        shelf.make_ready(RegionId(1), at(2));
        assert_eq!(state(&shelf, 1), Some(TaskState::Blocked));
        assert!(shelf.ready.is_empty());
        assert!(!shelf.settle_orphan(RegionId(2), at(3)), "that is another");
        assert!(shelf.settle_orphan(RegionId(1), at(3)));
        assert_eq!((shelf.waits, state(&shelf, 1)), (0, Some(TaskState::Ready)));
        assert!(!shelf.settle_orphan(RegionId(1), at(3)), "only once");
        // One that was not blocked by it stays as it is.
        send(&mut shelf, 2, at(4));
        shelf.put(&claim(2, 2, 5), PeerId(1));
        assert!(shelf.settle_orphan(RegionId(2), at(5)));
        assert_eq!(state(&shelf, 2), Some(TaskState::Idle));
        shelf.check(STORE, WINDOW).expect("sound");
    }

    #[test]
    fn an_answer_without_a_name_is_for_the_only_wait() {
        let mut shelf = shelf(&[claim(1, 1, 2), claim(2, 2, 3)]);
        assert_eq!(shelf.only_wait(), None);
        send(&mut shelf, 2, at(1));
        assert_eq!(shelf.only_wait(), Some(RegionId(2)));
        send(&mut shelf, 1, at(1));
        assert_eq!(shelf.only_wait(), None);
        shelf.end_wait(RegionId(2));
        assert_eq!(shelf.only_wait(), Some(RegionId(1)));
        // An orphan could be meant as well.
        shelf.remove(RegionId(1));
        assert_eq!(shelf.waits, 1);
        assert_eq!(shelf.only_wait(), None);
    }

    #[test]
    fn the_oldest_unanswered_wait_counts() {
        let mut shelf = shelf(&[claim(1, 1, 2), claim(2, 2, 3), claim(3, 3, 4)]);
        assert_eq!(shelf.oldest_wait(), None);
        for id in 1..=3 {
            send(&mut shelf, id, at(id));
        }
        shelf.end_wait(RegionId(1));
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), Some(at(2)));
        // Asked anew since: the older entry is void.
        shelf.get_mut(RegionId(2)).expect("known").asked_at = at(7);
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), Some(at(3)));
        shelf.end_wait(RegionId(3));
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), None);
    }

    #[test]
    fn reads_are_counted_until_they_end_or_go() {
        let mut shelf = shelf(&[claim(1, 1, 2), claim(2, 2, 3)]);
        for id in [1, 2] {
            shelf.get_mut(RegionId(id)).expect("known").state = TaskState::Reading(RequestId(9));
            shelf.reads += 1;
        }
        shelf.end_read(RegionId(1));
        assert_eq!((shelf.reads, state(&shelf, 1)), (1, Some(TaskState::Idle)));
        let gone = shelf.remove(RegionId(2)).expect("known");
        assert_eq!(gone.range, keys(2, 3));
        assert_eq!((shelf.reads, shelf.waits), (0, 0));
        assert_eq!(shelf.remove(RegionId(2)), None);
        shelf.check(STORE, WINDOW).expect("sound");
    }

    #[test]
    fn only_what_is_claimed_and_under_way_is_live() {
        use TaskState as State;
        let mut shelf = shelf(&[claim(1, 1, 2)]);
        let task = shelf.get_mut(RegionId(1)).expect("known");
        let states = [
            (State::Idle, false),
            (State::Ready, true),
            (State::Blocked, true),
            (State::Waiting, true),
            (State::Confirmed, true),
            (State::Reading(RequestId(1)), true),
            (State::Proven, false),
        ];
        for (state, live) in states {
            task.state = state;
            task.claimed = true;
            assert_eq!((task.is_live(), task.is_claimed()), (live, true));
            task.claimed = false;
            assert_eq!((task.is_live(), task.is_claimed()), (false, false));
        }
    }
}
