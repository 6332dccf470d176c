use std::mem;
use std::ops::Bound;

use super::KeyRangeSet;
use super::cover::before;
use crate::range::{EndKey, Key, KeyRange};

impl KeyRangeSet {
    /// Puts every key of `range` into the set; returns whether any of them was
    /// new.
    ///
    /// Cheapest when `range` begins where a range of the set ends.
    pub fn insert(&mut self, range: &KeyRange) -> bool {
        self.insert_bounds(range.start(), range.end())
    }

    /// Puts a run of ranges into the set, each of which begins where the one
    /// before it ends; returns whether any key was new.
    ///
    /// Neighbours are joined before the set is touched, so a run costs one
    /// insert. Ranges that are no neighbours are inserted one by one: the result
    /// is always that of inserting each.
    pub fn insert_run<'a>(&mut self, run: impl IntoIterator<Item = &'a KeyRange>) -> bool {
        let mut run = run.into_iter();
        let Some(first) = run.next() else {
            return false;
        };
        let (mut start, mut end) = (first.start(), first.end());
        let mut is_new = false;
        for range in run {
            if end.as_key() == Some(range.start()) {
                end = range.end();
            } else {
                is_new |= self.insert_bounds(start, end);
                (start, end) = (range.start(), range.end());
            }
        }
        self.insert_bounds(start, end) | is_new
    }

    /// Takes every key of `range` out of the set; returns whether any of them
    /// was in it.
    pub fn remove(&mut self, range: &KeyRange) -> bool {
        let mut was_in = false;
        let left = (Bound::Unbounded, Bound::Excluded(range.start()));
        if let Some((_, end)) = self.ranges.range_mut::<Key, _>(left).next_back()
            && end.is_after(range.start())
        {
            let old_end = mem::replace(end, EndKey::Bounded(range.start().clone()));
            self.keep_after(range, old_end);
            was_in = true;
        }
        while let Some(start) = self.first_start(Bound::Included(range.start()), range.end()) {
            if let Some(end) = self.ranges.remove(&start) {
                self.keep_after(range, end);
            }
            was_in = true;
        }
        was_in
    }

    /// Takes every key out of the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Inserts `[start, end)`, which must not be empty.
    fn insert_bounds(&mut self, start: &Key, end: &EndKey) -> bool {
        let touching = (
            Bound::Unbounded,
            end.as_key().map_or(Bound::Unbounded, Bound::Included),
        );
        let mut candidates = self.ranges.range_mut::<Key, _>(touching).rev();
        let Some((last_start, last_end)) = candidates.next() else {
            self.ranges.insert(start.clone(), end.clone());
            return true;
        };
        if last_start <= start {
            // Nothing begins inside the new range: it is covered, or prolongs
            // this entry, or stands alone.
            if *last_end >= *end {
                return false;
            }
            if last_end.cmp_key(start).is_ge() {
                last_end.clone_from(end);
            } else {
                self.ranges.insert(start.clone(), end.clone());
            }
            return true;
        }
        // This entry begins inside the new range or at its end, so it is
        // swallowed, and its end may lie further out.
        let swallowed = last_start.clone();
        let end = match &*last_end > end {
            true => mem::replace(last_end, EndKey::Unbounded),
            false => end.clone(),
        };
        let mut between = 0;
        let mut prolonged = None;
        for (entry_start, entry_end) in candidates {
            if entry_start <= start {
                prolonged = entry_end.cmp_key(start).is_ge().then_some(entry_end);
                break;
            }
            between += 1;
        }
        match prolonged {
            Some(entry_end) => *entry_end = end,
            None => {
                self.ranges.insert(start.clone(), end);
            }
        }
        self.ranges.remove(&swallowed);
        self.remove_next(start, between);
        true
    }

    /// Removes the `count` entries that follow on the one that begins at `start`.
    fn remove_next(&mut self, start: &Key, count: usize) {
        for _ in 0..count {
            if let Some(next) = self.first_start(Bound::Excluded(start), &EndKey::Unbounded) {
                self.ranges.remove(&next);
            }
        }
    }

    /// Returns the start of the first entry that begins between the bounds,
    /// which must hold at least one key.
    fn first_start(&self, from: Bound<&Key>, end: &EndKey) -> Option<Key> {
        let mut entries = self.ranges.range::<Key, _>((from, before(end)));
        entries.next().map(|(start, _)| start.clone())
    }

    /// Puts back what lies behind `removed` of an entry that ended at `end`.
    fn keep_after(&mut self, removed: &KeyRange, end: EndKey) {
        if let EndKey::Bounded(rest) = removed.end()
            && end.is_after(rest)
        {
            self.ranges.insert(rest.clone(), end);
        }
    }
}
