use std::collections::BTreeMap;

use super::Slot;
use super::bounds::Bounds;
use super::column::Column;
use super::marks::{Flag, Marks};
use crate::range::{Key, KeyRange};
use crate::region::{Claim, PeerId, RegionEpoch, RegionId};

/// Rows that came late, or are gone, before the table is sorted anew, at the
/// least. Few in tests, so that they get there.
const CHANGED_MIN: usize = if cfg!(test) { 4 } else { 256 };

/// The regions of one store, column by column: a large cluster has millions, so
/// that every byte of a row counts.
///
/// The rows of the first listing are sorted by their start keys, once. Rows that
/// come later are behind them, with indexes of their own, until there are so
/// many that sorting all anew is worth it. A row that is taken off stays until
/// then.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Table {
    bounds: Bounds,
    ids: Column,
    conf_vers: Column,
    versions: Column,
    peers: Column,
    marks: Vec<Marks>,
    /// How many rows, from the first on, are sorted by their start keys.
    sorted: usize,
    /// The sorted rows in the order of their ids.
    by_id: Vec<u32>,
    /// The rows behind the sorted ones that are not gone.
    late_by_id: BTreeMap<RegionId, Slot>,
    late_by_start: BTreeMap<(Key, RegionId), Slot>,
    /// Rows that are gone.
    gone: usize,
}

impl Table {
    /// Returns the number of rows that are not gone.
    pub(super) fn len(&self) -> usize {
        self.marks.len() - self.gone
    }

    /// Adds a row to a table that is not sorted yet.
    pub(super) fn collect(&mut self, claim: &Claim, peer_id: PeerId) {
        let region = &claim.region;
        self.add(&region.range, region.id, region.epoch, peer_id);
    }

    /// Ends the first listing: sorts what was collected.
    pub(super) fn seal(&mut self) {
        let rows = 1..self.marks.len();
        let in_order = rows
            .clone()
            .all(|row| self.bounds.start(row - 1) < self.bounds.start(row));
        if in_order {
            self.index();
            let id = |at: usize| self.ids.get(self.by_id[at] as usize);
            if rows.into_iter().all(|at| id(at - 1) != id(at)) {
                return;
            }
        }
        self.sort();
    }

    /// Adds a row behind the others. The id must not be in use.
    pub(super) fn put(&mut self, claim: &Claim, peer_id: PeerId) -> Slot {
        let region = &claim.region;
        let slot = self.add(&region.range, region.id, region.epoch, peer_id);
        self.late_by_id.insert(region.id, slot);
        self.late_by_start
            .insert((region.range.start().clone(), region.id), slot);
        slot
    }

    fn add(&mut self, range: &KeyRange, id: RegionId, epoch: RegionEpoch, peer_id: PeerId) -> Slot {
        let slot = Slot::at(self.marks.len());
        self.bounds.push(range);
        self.ids.push(id.0);
        self.conf_vers.push(epoch.conf_ver);
        self.versions.push(epoch.version);
        self.peers.push(peer_id.0);
        self.marks.push(Marks::CLAIMED);
        slot
    }

    /// Returns the row of a region that is not gone.
    pub(super) fn find(&self, id: RegionId) -> Option<Slot> {
        self.find_any(id)
            .filter(|slot| !self.marks(*slot).is_gone())
    }

    /// As [`Table::find`], but looks first where the region is if those asked for
    /// come in key order, one or two swapped.
    pub(super) fn find_next(&self, id: RegionId, next: &mut Slot) -> Option<Slot> {
        let near = [next.row(), next.row() + 1].into_iter();
        let found = near
            .filter(|row| *row < self.sorted && self.ids.get(*row) == id.0)
            .map(Slot::at)
            .find(|slot| !self.marks(*slot).is_gone())
            .or_else(|| self.find(id))?;
        *next = Slot::at(found.row() + 1);
        Some(found)
    }

    /// Returns the row of a region, also of one that is gone, if it is still
    /// known.
    pub(super) fn find_any(&self, id: RegionId) -> Option<Slot> {
        if let Some(slot) = self.late_by_id.get(&id) {
            return Some(*slot);
        }
        let at = self
            .by_id
            .binary_search_by_key(&id.0, |row| self.ids.get(*row as usize))
            .ok()?;
        Some(Slot(self.by_id[at]))
    }

    pub(super) fn id(&self, slot: Slot) -> RegionId {
        RegionId(self.ids.get(slot.row()))
    }

    pub(super) fn epoch(&self, slot: Slot) -> RegionEpoch {
        RegionEpoch {
            conf_ver: self.conf_vers.get(slot.row()),
            version: self.versions.get(slot.row()),
        }
    }

    pub(super) fn peer_id(&self, slot: Slot) -> PeerId {
        PeerId(self.peers.get(slot.row()))
    }

    pub(super) fn set_peer_id(&mut self, slot: Slot, peer_id: PeerId) {
        self.peers.set(slot.row(), peer_id.0);
    }

    pub(super) fn range(&self, slot: Slot) -> KeyRange {
        self.bounds.range(slot.row())
    }

    pub(super) fn start(&self, slot: Slot) -> &[u8] {
        self.bounds.start(slot.row())
    }

    /// Returns what rows are ordered by: it does not depend on where they lie, so
    /// that a machine does the same before and after its shelves are tidied.
    pub(super) fn place(&self, slot: Slot) -> (&[u8], RegionId) {
        (self.start(slot), self.id(slot))
    }

    /// Returns whether the claim describes this very region.
    pub(super) fn matches(&self, slot: Slot, claim: &Claim) -> bool {
        self.epoch(slot) == claim.region.epoch && self.bounds.is(slot.row(), &claim.region.range)
    }

    pub(super) fn marks(&self, slot: Slot) -> Marks {
        self.marks[slot.row()]
    }

    pub(super) fn marks_mut(&mut self, slot: Slot) -> &mut Marks {
        &mut self.marks[slot.row()]
    }

    /// Takes a row that is not gone off the shelf.
    pub(super) fn take_off(&mut self, slot: Slot) {
        if slot.row() >= self.sorted {
            let start = Key::from(self.start(slot));
            self.late_by_start.remove(&(start, self.id(slot)));
        }
        self.marks_mut(slot).set_gone();
        self.gone += 1;
    }

    /// Puts a row that is gone back.
    pub(super) fn bring_back(&mut self, slot: Slot) {
        if slot.row() >= self.sorted {
            let start = Key::from(self.start(slot));
            self.late_by_start.insert((start, self.id(slot)), slot);
        }
        *self.marks_mut(slot) = Marks::CLAIMED;
        self.gone -= 1;
    }

    /// Returns all rows, also those that are gone.
    pub(super) fn rows(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.marks.len()).map(Slot::at)
    }

    /// Returns the sorted rows in key order, also those that are gone.
    pub(super) fn sorted_rows(&self) -> std::ops::Range<usize> {
        0..self.sorted
    }

    /// Returns the rows that came late, in key order.
    pub(super) fn late_rows(&self) -> impl Iterator<Item = Slot> + '_ {
        self.late_by_start.values().copied()
    }

    /// Returns the number of sorted rows that begin before `key`.
    pub(super) fn sorted_before(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.sorted);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.bounds.start(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(super) fn late_by_start(&self) -> &BTreeMap<(Key, RegionId), Slot> {
        &self.late_by_start
    }

    /// Returns whether so much changed that sorting all anew is worth it.
    pub(super) fn is_untidy(&self) -> bool {
        let changed = self.marks.len() - self.sorted + self.gone;
        changed >= CHANGED_MIN && changed > self.sorted / 8
    }

    /// Sorts all rows. Rows that are gone are dropped, unless the listing under
    /// way claims them, and of rows with the same id all but the last. Returns
    /// where each row went.
    pub(super) fn sort(&mut self) -> Vec<Option<Slot>> {
        let mut rows: Vec<u32> = self.rows().map(|slot| slot.0).collect();
        rows.sort_unstable_by_key(|row| (self.ids.get(*row as usize), *row));
        let mut kept: Vec<u32> = Vec::with_capacity(rows.len());
        for row in rows {
            let same = kept
                .last()
                .is_some_and(|last| self.ids.get(*last as usize) == self.ids.get(row as usize));
            let marks = self.marks[row as usize];
            if marks.is_gone() && !marks.has(Flag::Listed) {
                continue;
            }
            if same {
                kept.pop();
            }
            kept.push(row);
        }
        kept.sort_unstable_by(|one, other| {
            let place = |row: &u32| self.place(Slot(*row));
            place(one).cmp(&place(other))
        });
        let mut moved = vec![None; self.marks.len()];
        let mut sorted = Self::default();
        for row in kept {
            let from = Slot(row);
            let to = sorted.add(
                &self.range(from),
                self.id(from),
                self.epoch(from),
                self.peer_id(from),
            );
            *sorted.marks_mut(to) = self.marks(from);
            moved[from.row()] = Some(to);
        }
        sorted.index();
        *self = sorted;
        moved
    }

    /// Indexes rows that are all in key order.
    fn index(&mut self) {
        self.sorted = self.marks.len();
        self.gone = self.marks.iter().filter(|marks| marks.is_gone()).count();
        let mut by_id: Vec<u32> = self.rows().map(|slot| slot.0).collect();
        by_id.sort_unstable_by_key(|row| self.ids.get(*row as usize));
        self.by_id = by_id;
        self.bounds.shrink();
        for column in [
            &mut self.ids,
            &mut self.conf_vers,
            &mut self.versions,
            &mut self.peers,
        ] {
            column.shrink();
        }
        self.marks.shrink_to_fit();
    }

    /// Checks the indexes and counters against the rows.
    pub(super) fn check(&self) -> Result<(), String> {
        let gone = self.marks.iter().filter(|marks| marks.is_gone()).count();
        if gone != self.gone {
            return Err(format!("{gone} rows are gone, {} counted", self.gone));
        }
        let late = self.marks.len() - self.sorted;
        let late_gone = self
            .rows()
            .skip(self.sorted)
            .filter(|slot| self.marks(*slot).is_gone())
            .count();
        if self.late_by_start.len() != late - late_gone {
            return Err("the index by start key does not fit the regions".to_owned());
        }
        for slot in self.rows().filter(|slot| !self.marks(*slot).is_gone()) {
            if self.find(self.id(slot)) != Some(slot) {
                return Err(format!("region {} is not found by its id", self.id(slot)));
            }
        }
        Ok(())
    }

    /// Returns whether the listing under way claims the row, and with nothing
    /// pending.
    pub(super) fn take_listed(&mut self, slot: Slot) -> Option<bool> {
        let marks = self.marks_mut(slot);
        let clean = marks.has(Flag::ListedClean);
        let listed = marks.has(Flag::Listed);
        marks.set(Flag::Listed, false);
        marks.set(Flag::ListedClean, false);
        listed.then_some(clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::EndKey;
    use crate::region::Region;

    fn claim(id: u8) -> Claim {
        let end = EndKey::Bounded(Key::from(&[id + 1]));
        Claim {
            region: Region {
                id: RegionId(id.into()),
                range: KeyRange::new(Key::from(&[id]), end).expect("not empty"),
                epoch: RegionEpoch::default(),
                peers: Vec::new(),
            },
            has_pending_admin: false,
        }
    }

    #[test]
    fn all_is_sorted_anew_only_if_much_has_changed() {
        let sealed = |rows: u8| {
            let mut table = Table::default();
            for id in 1..=rows {
                table.collect(&claim(id), PeerId(1));
            }
            table.seal();
            table
        };
        // So many rows, sorted, and how many changes make it worth while.
        for (rows, changes) in [(0, CHANGED_MIN), (20, CHANGED_MIN), (80, 11)] {
            let mut table = sealed(rows);
            let is_untidy: Vec<bool> = (0..12)
                .map(|id| {
                    let before = table.is_untidy();
                    table.put(&claim(100 + id), PeerId(1));
                    before
                })
                .collect();
            let expected: Vec<bool> = (0..12).map(|put| put >= changes).collect();
            assert_eq!(is_untidy, expected, "{rows} rows");
        }
        let mut table = sealed(20);
        for row in 0..CHANGED_MIN {
            assert!(!table.is_untidy());
            table.take_off(Slot::at(row));
        }
        assert!(table.is_untidy());
    }

    #[test]
    fn sorting_drops_what_is_gone_unless_it_is_being_listed() {
        let mut table = Table::default();
        for id in 1..=3 {
            table.collect(&claim(id), PeerId(1));
        }
        table.seal();
        for row in [0, 1] {
            table.take_off(Slot::at(row));
        }
        table.marks_mut(Slot::at(1)).set(Flag::Listed, true);
        let moved = table.sort();
        assert_eq!(moved, [None, Some(Slot::at(0)), Some(Slot::at(1))]);
        assert_eq!((table.len(), table.rows().count()), (1, 2));
        assert_eq!(table.find_any(RegionId(1)), None);
        assert_eq!(table.find_any(RegionId(2)), Some(Slot::at(0)));
        assert_eq!(table.find(RegionId(2)), None, "it is gone all the same");
        table.check().expect("sound");
    }
}
