use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::marks::Flag;
use super::pace::ReadPace;
use super::table::Table;
use super::{Slot, Task, TaskState};
use crate::machine::RequestId;
use crate::range::{Key, KeyRange, KeyRangeSet};
use crate::region::{Claim, PeerId, RegionId, StoreId};
use crate::time::Timestamp;

/// Waits that may be kept in `Shelf::asked` although they are answered, at the
/// least.
const ASKED_MIN: usize = 256;

/// The regions of one store.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::machine) struct Shelf {
    pub(super) table: Table,
    /// What only regions that were asked and are not proven need.
    pub(super) asks: BTreeMap<Slot, Ask>,
    /// Waits that are in flight for an epoch that is no longer wanted.
    pub(super) orphans: BTreeSet<RegionId>,
    /// The number of the last complete listing since the leases.
    pub(in crate::machine) listed: Option<RequestId>,
    /// Regions to ask; may hold ones that need it no more.
    pub(in crate::machine) ready: VecDeque<Slot>,
    /// Regions to read; likewise.
    pub(in crate::machine) confirmed: VecDeque<Slot>,
    /// When the waits in flight were sent, and those blocked by one began to
    /// be, oldest first; may hold ones that are answered.
    pub(in crate::machine) asked: VecDeque<(Timestamp, Slot)>,
    pub(in crate::machine) waits: u32,
    pub(in crate::machine) reads: u32,
    /// When its last region was proven.
    pub(in crate::machine) last_proof: Option<Timestamp>,
    /// How many reads it is given at once.
    pub(in crate::machine) pace: ReadPace,
    pub(super) next: Next,
}

/// Where the next answer is looked for first: a store answers more or less in
/// the order in which it was asked, and lists in key order or in another one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Next {
    wait: Slot,
    read: Slot,
    claim: Slot,
}

/// How a region is being asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ask {
    /// When it was asked first, for the report.
    pub(super) first: Timestamp,
    /// When it was asked, or looked at anew, last.
    pub(super) last: Timestamp,
    /// The read in flight.
    pub(super) read: Option<RequestId>,
}

/// A region that the store claims no more.
#[derive(Debug)]
pub(in crate::machine) struct Unlisted {
    pub(in crate::machine) id: RegionId,
    pub(in crate::machine) state: TaskState,
    pub(in crate::machine) range: KeyRange,
}

/// Looking.
impl Shelf {
    /// Returns the number of regions.
    pub(in crate::machine) fn len(&self) -> usize {
        self.table.len()
    }

    pub(in crate::machine) fn get(&self, id: RegionId) -> Option<Task> {
        self.task(self.table.find(id)?)
    }

    /// Returns the task that the next answer to a wait is for.
    pub(in crate::machine) fn next_wait(&mut self, id: RegionId) -> Option<Task> {
        let slot = self.table.find_next(id, &mut self.next.wait)?;
        self.task(slot)
    }

    /// Returns the task that the next answer to a read is for.
    pub(in crate::machine) fn next_read(&mut self, id: RegionId) -> Option<Task> {
        let slot = self.table.find_next(id, &mut self.next.read)?;
        self.task(slot)
    }

    /// Returns the task in a slot, `None` when it was removed.
    pub(in crate::machine) fn task(&self, slot: Slot) -> Option<Task> {
        let marks = self.table.marks(slot);
        Some(Task {
            slot,
            id: self.table.id(slot),
            epoch: self.table.epoch(slot),
            peer_id: self.table.peer_id(slot),
            state: marks.state()?,
            claimed: marks.has(Flag::Claimed),
            clean: marks.has(Flag::Clean),
        })
    }

    pub(in crate::machine) fn range(&self, slot: Slot) -> KeyRange {
        self.table.range(slot)
    }

    /// Returns whether all of a region is covered. The range is only unpacked if
    /// its start is.
    pub(in crate::machine) fn is_covered(&self, slot: Slot, by: &KeyRangeSet) -> bool {
        by.contains_bytes(self.start(slot)) && by.covers(&self.range(slot))
    }

    pub(super) fn start(&self, slot: Slot) -> &[u8] {
        self.table.start(slot)
    }

    /// Returns what tasks are ordered by.
    pub(in crate::machine) fn place(&self, slot: Slot) -> (&[u8], RegionId) {
        self.table.place(slot)
    }

    /// Returns the read that is in flight for a region.
    pub(in crate::machine) fn read_of(&self, slot: Slot) -> Option<RequestId> {
        self.asks.get(&slot).and_then(|ask| ask.read)
    }

    /// Returns when a region was asked first.
    pub(in crate::machine) fn first_asked(&self, slot: Slot) -> Option<Timestamp> {
        self.asks.get(&slot).map(|ask| ask.first)
    }

    /// Drops what is not to be sent any more from the heads of the queues, so
    /// that they are empty when nothing is.
    pub(in crate::machine) fn trim_unsent(&mut self) {
        let table = &self.table;
        let is = |slot: &Slot, state| table.marks(*slot).state() == Some(state);
        while self
            .ready
            .front()
            .is_some_and(|slot| !is(slot, TaskState::Ready))
        {
            self.ready.pop_front();
        }
        while self
            .confirmed
            .front()
            .is_some_and(|slot| !is(slot, TaskState::Confirmed))
        {
            self.confirmed.pop_front();
        }
    }

    /// Returns whether another region may be asked. What is confirmed and cannot
    /// be read yet is bounded too: a store that is slow to read would only fill
    /// the books.
    pub(in crate::machine) fn has_room_for_waits(&self, window: u32) -> bool {
        self.waits < window && self.confirmed.len() < 2 * window as usize
    }

    /// Returns whether a call for reads may go out.
    pub(in crate::machine) fn has_room_for_reads(&self, window: u32) -> bool {
        self.reads <= self.pace.most(window) / 2
    }

    /// Returns whether something could be sent that is not.
    pub(in crate::machine) fn holds_back(&self, window: u32) -> bool {
        (self.has_room_for_waits(window) && !self.ready.is_empty())
            || (self.has_room_for_reads(window) && !self.confirmed.is_empty())
    }

    /// Returns when a region was asked, or looked at anew, last.
    pub(in crate::machine) fn last_asked(&self, slot: Slot) -> Option<Timestamp> {
        self.asks.get(&slot).map(|ask| ask.last)
    }

    /// Returns the slots of the regions that are asked.
    pub(in crate::machine) fn asked_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.asks.keys().copied()
    }

    pub(in crate::machine) fn iter(&self) -> impl Iterator<Item = Task> + '_ {
        self.table.rows().filter_map(|slot| self.task(slot))
    }

    /// Returns the slots of what is proven.
    pub(in crate::machine) fn proven_slots(&self) -> Vec<Slot> {
        let proven = self.iter().filter(|task| task.state == TaskState::Proven);
        proven.map(|task| task.slot).collect()
    }

    pub(super) fn sorted_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table
            .sorted_rows()
            .map(Slot::at)
            .filter(|slot| !self.table.marks(*slot).is_gone())
    }

    pub(super) fn late_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.table.late_rows()
    }

    /// Returns the tasks that overlap `range`. Claims of one store hardly ever
    /// overlap each other, so the way back from the start ends at the first one
    /// that ends before it.
    pub(in crate::machine) fn overlapping(&self, range: &KeyRange) -> Vec<Task> {
        let mut found = Vec::new();
        let from = self.table.sorted_before(range.start().as_bytes());
        let sorted = self.table.sorted_rows();
        self.reaching(range, (sorted.start..from).rev().map(Slot::at), &mut found);
        self.beginning(range, (from..sorted.end).map(Slot::at), &mut found);
        let late = self.table.late_by_start();
        if !late.is_empty() {
            let from = (range.start().clone(), RegionId(0));
            let before = late.range(..from.clone()).rev().map(|(_, slot)| *slot);
            self.reaching(range, before, &mut found);
            let behind = late.range(from..).map(|(_, slot)| *slot);
            self.beginning(range, behind, &mut found);
        }
        found.sort_unstable_by(|one, other| self.place(one.slot).cmp(&self.place(other.slot)));
        found
    }

    /// Adds those of the slots, which begin before the range, nearest first, that
    /// reach into it.
    fn reaching(&self, range: &KeyRange, slots: impl Iterator<Item = Slot>, found: &mut Vec<Task>) {
        for task in slots.filter_map(|slot| self.task(slot)) {
            if self.range(task.slot).overlaps(range) {
                found.push(task);
            } else if task.claimed {
                break;
            }
        }
    }

    /// Adds those of the slots, in key order, that begin in the range.
    fn beginning(
        &self,
        range: &KeyRange,
        slots: impl Iterator<Item = Slot>,
        found: &mut Vec<Task>,
    ) {
        let end = range.end().as_key().map(Key::as_bytes);
        let slots = slots.take_while(|slot| end.is_none_or(|end| self.start(*slot) < end));
        found.extend(slots.filter_map(|slot| self.task(slot)));
    }

    /// Returns one region whose wait is in flight, if it is the only one.
    pub(in crate::machine) fn only_wait(&self) -> Option<Task> {
        if self.waits != 1 || !self.orphans.is_empty() {
            return None;
        }
        self.asks
            .keys()
            .filter_map(|slot| self.task(*slot))
            .find(|task| task.state == TaskState::Waiting)
    }
}

/// Taking in what the store claims.
impl Shelf {
    /// Adds a claim of the first listing; `seal` has to follow the last one.
    pub(in crate::machine) fn collect(&mut self, claim: &Claim, peer_id: PeerId) {
        self.table.collect(claim, peer_id);
    }

    /// Ends the first listing.
    pub(in crate::machine) fn seal(&mut self) {
        self.table.seal();
    }

    /// Takes in a claim of a listing under way. Returns whether the region is
    /// known just so; if not, the claim is to be put on the shelf when the
    /// listing is complete.
    pub(in crate::machine) fn list(&mut self, claim: &Claim, peer_id: PeerId, clean: bool) -> bool {
        let next = &mut self.next.claim;
        let found = self.table.find_next(claim.region.id, next);
        let found = found.or_else(|| self.table.find_any(claim.region.id));
        let known = found.filter(|slot| {
            self.table.peer_id(*slot) == peer_id && self.table.matches(*slot, claim)
        });
        let Some(slot) = known else {
            return false;
        };
        let marks = self.table.marks_mut(slot);
        marks.set(Flag::Listed, true);
        marks.set(Flag::ListedClean, clean);
        true
    }

    /// Forgets what the listing under way claimed so far.
    pub(in crate::machine) fn forget_listing(&mut self) {
        for slot in self.table.rows() {
            self.table.take_listed(slot);
        }
    }

    /// Ends a listing: what it claimed is claimed, nothing else. Returns the
    /// regions that had been removed and are back.
    pub(in crate::machine) fn end_listing(&mut self, request: RequestId) -> Vec<Slot> {
        self.listed = Some(request);
        let mut back = Vec::new();
        for slot in self.table.rows() {
            let listed = self.table.take_listed(slot);
            if listed.is_some() && self.table.marks(slot).is_gone() {
                self.table.bring_back(slot);
                back.push(slot);
            }
            let marks = self.table.marks_mut(slot);
            marks.set(Flag::Claimed, listed.is_some());
            marks.set(Flag::Clean, listed == Some(true));
        }
        back
    }

    /// Puts a claim on the shelf in place of what is known of that region.
    pub(in crate::machine) fn put(&mut self, claim: &Claim, peer_id: PeerId) -> Slot {
        self.remove(claim.region.id);
        self.table.put(claim, peer_id)
    }

    /// Returns the slot of a region that is known just as the claim describes it.
    pub(in crate::machine) fn matching(&self, claim: &Claim) -> Option<Slot> {
        self.table
            .find(claim.region.id)
            .filter(|slot| self.table.matches(*slot, claim))
    }

    /// Notes that a complete listing claims a region.
    pub(in crate::machine) fn claim(&mut self, slot: Slot, peer_id: PeerId, clean: bool) {
        self.table.set_peer_id(slot, peer_id);
        let marks = self.table.marks_mut(slot);
        marks.set(Flag::Claimed, true);
        marks.set(Flag::Clean, clean);
    }

    /// Returns what the last complete listing did not claim, save what is proven.
    pub(in crate::machine) fn unlisted(&self) -> Vec<Unlisted> {
        let mut unlisted: Vec<Unlisted> = self
            .iter()
            .filter(|task| !task.claimed && task.state != TaskState::Proven)
            .map(|task| Unlisted {
                id: task.id,
                state: task.state,
                range: self.range(task.slot),
            })
            .collect();
        unlisted.sort_unstable_by(|one, other| {
            (one.range.start(), one.id).cmp(&(other.range.start(), other.id))
        });
        unlisted
    }

    /// Sorts everything anew if much has changed.
    pub(in crate::machine) fn tidy(&mut self) {
        if self.table.is_untidy() {
            self.sort();
        }
    }

    pub(super) fn sort(&mut self) {
        let moved = self.table.sort();
        let to = |slot: &Slot| moved.get(slot.row()).copied().flatten();
        self.ready = self.ready.iter().filter_map(to).collect();
        self.confirmed = self.confirmed.iter().filter_map(to).collect();
        let asked = self.asked.iter();
        self.asked = asked
            .filter_map(|(sent, slot)| Some((*sent, to(slot)?)))
            .collect();
        let asks = self.asks.iter();
        self.asks = asks
            .filter_map(|(slot, ask)| Some((to(slot)?, *ask)))
            .collect();
    }
}

/// Asking.
impl Shelf {
    /// Removes a task. A wait of it that is in flight keeps its slot of the
    /// window.
    pub(in crate::machine) fn remove(&mut self, id: RegionId) -> Option<(Task, KeyRange)> {
        let task = self.get(id)?;
        let range = self.range(task.slot);
        match task.state {
            TaskState::Waiting => {
                self.orphans.insert(id);
            }
            TaskState::Reading => self.reads = self.reads.saturating_sub(1),
            _ => {}
        }
        self.table.take_off(task.slot);
        self.asks.remove(&task.slot);
        Some((task, range))
    }

    /// Notes that there is nothing to do for a region now.
    pub(in crate::machine) fn make_idle(&mut self, slot: Slot) {
        self.table.marks_mut(slot).set_state(TaskState::Idle);
        self.asks.remove(&slot);
    }

    /// Lets all tasks be asked, in key order. None was before.
    pub(in crate::machine) fn make_all_ready(&mut self) {
        let mut late: Vec<Slot> = self.late_slots().collect();
        late.sort_unstable_by(|one, other| self.place(*one).cmp(&self.place(*other)));
        let mut late = late.into_iter().peekable();
        let mut ready = VecDeque::with_capacity(self.len());
        for slot in self.sorted_slots() {
            let is_before = |other: &Slot| self.place(*other) < self.place(slot);
            while let Some(before) = late.next_if(is_before) {
                ready.push_back(before);
            }
            ready.push_back(slot);
        }
        ready.extend(late);
        for slot in &ready {
            self.table.marks_mut(*slot).set_state(TaskState::Ready);
        }
        self.ready = ready;
    }

    /// Lets an idle or proven task be asked (again).
    pub(in crate::machine) fn make_ready(&mut self, slot: Slot, now: Timestamp) {
        if !self.orphans.is_empty() && self.orphans.contains(&self.table.id(slot)) {
            self.table.marks_mut(slot).set_state(TaskState::Blocked);
            self.note_asked(slot, now);
            self.asked.push_back((now, slot));
        } else {
            self.table.marks_mut(slot).set_state(TaskState::Ready);
            self.ready.push_back(slot);
        }
    }

    /// Notes that a region's wait is sent.
    pub(in crate::machine) fn begin_wait(&mut self, slot: Slot, now: Timestamp) {
        self.table.marks_mut(slot).set_state(TaskState::Waiting);
        self.note_asked(slot, now);
        self.asked.push_back((now, slot));
        self.waits += 1;
        // One wait that is long in coming must not keep all that were answered
        // behind it.
        if self.asked.len() > ASKED_MIN + 2 * self.asks.len() {
            let asked = std::mem::take(&mut self.asked);
            self.asked = asked
                .into_iter()
                .filter(|(sent, slot)| self.is_asked(*slot, *sent))
                .collect();
        }
    }

    /// Notes that a region is asked, or looked at anew.
    pub(in crate::machine) fn note_asked(&mut self, slot: Slot, now: Timestamp) {
        let ask = self.asks.entry(slot).or_insert(Ask {
            first: now,
            last: now,
            read: None,
        });
        ask.last = now;
    }

    /// Notes that a region's wait was answered.
    pub(in crate::machine) fn end_wait(&mut self, slot: Slot) {
        self.table.marks_mut(slot).set_state(TaskState::Idle);
        self.waits = self.waits.saturating_sub(1);
    }

    /// Lets a region be read, since its wait is confirmed.
    pub(in crate::machine) fn make_confirmed(&mut self, slot: Slot) {
        self.table.marks_mut(slot).set_state(TaskState::Confirmed);
        self.confirmed.push_back(slot);
    }

    /// Notes that a region's read is sent.
    pub(in crate::machine) fn begin_read(&mut self, slot: Slot, request: RequestId) {
        self.table.marks_mut(slot).set_state(TaskState::Reading);
        if let Some(ask) = self.asks.get_mut(&slot) {
            ask.read = Some(request);
        }
        self.reads += 1;
    }

    /// Notes that a region's read was answered.
    pub(in crate::machine) fn end_read(&mut self, slot: Slot) {
        self.table.marks_mut(slot).set_state(TaskState::Idle);
        if let Some(ask) = self.asks.get_mut(&slot) {
            ask.read = None;
        }
        self.reads = self.reads.saturating_sub(1);
    }

    /// Notes that a region is proven.
    pub(in crate::machine) fn make_proven(&mut self, slot: Slot, now: Timestamp) {
        self.table.marks_mut(slot).set_state(TaskState::Proven);
        self.asks.remove(&slot);
        self.last_proof = Some(now);
    }

    /// Takes in an answer for a wait that nobody wants any more, whatever it
    /// says: at most one wait is in flight per region. Returns whether there was
    /// one.
    pub(in crate::machine) fn settle_orphan(&mut self, id: RegionId, now: Timestamp) -> bool {
        if !self.orphans.remove(&id) {
            return false;
        }
        self.waits = self.waits.saturating_sub(1);
        if let Some(task) = self.get(id)
            && task.state == TaskState::Blocked
        {
            self.make_ready(task.slot, now);
        }
        true
    }

    /// Returns when the oldest wait in flight was sent.
    pub(in crate::machine) fn oldest_wait(&self) -> Option<Timestamp> {
        self.asked.front().map(|(sent, _)| *sent)
    }

    /// Forgets the waits at the front that are answered.
    pub(in crate::machine) fn trim_asked(&mut self) {
        while let Some((sent, slot)) = self.asked.front() {
            if self.is_asked(*slot, *sent) {
                break;
            }
            self.asked.pop_front();
        }
    }

    /// Returns whether the wait that was sent, or looked at, at `sent` is
    /// unanswered.
    pub(super) fn is_asked(&self, slot: Slot, sent: Timestamp) -> bool {
        let state = self.table.marks(slot).state();
        matches!(state, Some(TaskState::Waiting | TaskState::Blocked))
            && self.asks.get(&slot).is_some_and(|ask| ask.last == sent)
    }

    /// Checks the counters against the tasks.
    pub(in crate::machine) fn check(&self, store: StoreId, window: u32) -> Result<(), String> {
        let count = |state| self.iter().filter(|task| task.state == state).count();
        let waits = count(TaskState::Waiting) + self.orphans.len();
        if waits != self.waits as usize {
            return Err(format!(
                "store {store}: {waits} waits in flight, {} counted",
                self.waits
            ));
        }
        let reads = count(TaskState::Reading);
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
        self.table
            .check()
            .map_err(|broken| format!("store {store}: {broken}"))
    }
}
