use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::RequestId;
use super::entry::{Asked, Entry, EntryState, Setbacks};
use super::follow_up::{FollowUp, Haste};
use super::known::Known;
use super::normal::Normalizer;
use crate::range::{EndKey, Key, KeyRange, KeyRangeSet};
use crate::region::ScannedRegion;
use crate::time::Timestamp;

/// The key ranges whose last attempt failed (rules R9 and R11). Entries never
/// overlap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct RetryBook {
    entries: BTreeMap<Key, Entry>,
    /// The starts of the active entries by what is being done about them, so
    /// that nobody has to look at all of them.
    armed: BTreeSet<(Timestamp, Key)>,
    queued: BTreeSet<Key>,
    /// Those of the queued ones that came since neighbors were joined.
    unjoined: BTreeSet<Key>,
    scanning: BTreeMap<RequestId, Key>,
    listing: BTreeSet<Key>,
}

impl RetryBook {
    /// Returns the parts of `range` that no active entry speaks for, and the
    /// worst that any part has suffered. Resting entries give way.
    pub(super) fn claim(&mut self, range: &KeyRange) -> (Vec<KeyRange>, Setbacks) {
        let mut setbacks = Setbacks::default();
        let mut taken = KeyRangeSet::new();
        for start in self.overlapping(range) {
            let Some(entry) = self.entries.get(&start) else {
                continue;
            };
            setbacks = setbacks.worst(entry.setbacks);
            if entry.is_active() {
                taken.insert(&entry.range);
                continue;
            }
            if let Some(entry) = self.remove(&start) {
                self.put_back_outside(entry, range);
            }
        }
        (taken.gaps(range).collect(), setbacks)
    }

    fn put_back_outside(&mut self, entry: Entry, range: &KeyRange) {
        let before = KeyRange::new(
            entry.range.start().clone(),
            EndKey::Bounded(range.start().clone()),
        );
        let after = range
            .end()
            .as_key()
            .and_then(|end| KeyRange::new(end.clone(), entry.range.end().clone()));
        for rest in [before, after].into_iter().flatten() {
            if let Some(rest) = rest.intersection(&entry.range) {
                self.insert(Entry {
                    range: rest,
                    ..entry.clone()
                });
            }
        }
    }

    /// Adds an entry; its range must be free.
    pub(super) fn insert(&mut self, entry: Entry) {
        let start = entry.range.start().clone();
        match &entry.state {
            EntryState::Armed { due } => {
                self.armed.insert((*due, start.clone()));
            }
            EntryState::Queued { .. } => {
                self.queued.insert(start.clone());
                self.unjoined.insert(start.clone());
            }
            EntryState::Scanning { request, .. } => {
                self.scanning.insert(*request, start.clone());
            }
            EntryState::Listing { .. } => {
                self.listing.insert(start.clone());
            }
            EntryState::Resting => {}
        }
        self.entries.insert(start, entry);
    }

    pub(super) fn remove(&mut self, start: &Key) -> Option<Entry> {
        let entry = self.entries.remove(start)?;
        match &entry.state {
            EntryState::Armed { due } => {
                self.armed.remove(&(*due, start.clone()));
            }
            EntryState::Queued { .. } => {
                self.queued.remove(start);
            }
            EntryState::Scanning { request, .. } => {
                self.scanning.remove(request);
            }
            EntryState::Listing { .. } => {
                self.listing.remove(start);
            }
            EntryState::Resting => {}
        }
        Some(entry)
    }

    pub(super) fn set_state(&mut self, start: &Key, state: EntryState) {
        if let Some(entry) = self.remove(start) {
            self.insert(Entry { state, ..entry });
        }
    }

    pub(super) fn get(&self, start: &Key) -> Option<&Entry> {
        self.entries.get(start)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Makes one entry of neighbors that are queued, so that what failed together
    /// is looked at together.
    pub(super) fn join_queued(&mut self) {
        // In key order, so that what lies before is joined already.
        while let Some(start) = self.unjoined.pop_first() {
            self.join_neighbors(start);
        }
    }

    /// Joins a queued entry with the one before it and those behind it.
    fn join_neighbors(&mut self, start: Key) {
        if !self.queued.contains(&start) {
            return;
        }
        let before = self.queued.range::<Key, _>(..&start).next_back().cloned();
        let mut first = start;
        if let Some(before) = before
            && self.join(&before, &first)
        {
            first = before;
        }
        loop {
            let from = (Bound::Excluded(&first), Bound::Unbounded);
            let Some(next) = self.queued.range::<Key, _>(from).next().cloned() else {
                return;
            };
            if !self.join(&first, &next) {
                return;
            }
        }
    }

    /// Joins two entries if they touch. Returns whether they do.
    fn join(&mut self, one: &Key, next: &Key) -> bool {
        let touch = match (self.entries.get(one), self.entries.get(next)) {
            (Some(one), Some(next)) => one.touches(next),
            _ => false,
        };
        if touch
            && let Some(next) = self.remove(next)
            && let Some(one) = self.entries.get_mut(one)
        {
            one.join(next);
        }
        touch
    }

    /// Notes what failed with all entries that overlap `range`.
    pub(super) fn note_failed(&mut self, range: &KeyRange, follow_up: FollowUp, now: Timestamp) {
        for start in self.overlapping(range) {
            if let Some(entry) = self.entries.get_mut(&start) {
                entry.suspects.extend(follow_up.store);
                entry.failed.extend(follow_up.failed);
                entry.is_stale = true;
                entry.is_slow |= follow_up.haste == Haste::Backoff;
                entry.not_before = entry.not_before.max(now + follow_up.at_least);
            }
        }
    }

    /// Takes in what PD says of the range of an entry.
    pub(super) fn note_scanned(&mut self, start: &Key, regions: &[ScannedRegion]) {
        if let Some(entry) = self.entries.get_mut(start) {
            entry.known.scanned(&entry.range, regions);
        }
    }

    /// Lets the entries that overlap `range` know what failed before.
    pub(super) fn remember(&mut self, range: &KeyRange, before: &Entry) {
        for start in self.overlapping(range) {
            if let Some(entry) = self.entries.get_mut(&start) {
                entry.suspects.extend(&before.suspects);
                entry.failed.extend(&before.failed);
                entry.known.join(before.known.within(&entry.range));
            }
        }
    }

    /// Returns whether this very thing failed for `range` and its backoff runs.
    /// Whatever else is claimed there is news and may be asked at once.
    pub(super) fn is_resting(&self, range: &KeyRange, asked: &Asked) -> bool {
        !self.entries.is_empty()
            && self.overlapping(range).iter().any(|start| {
                self.entries.get(start).is_some_and(|entry| {
                    matches!(entry.state, EntryState::Armed { .. }) && entry.failed.contains(asked)
                })
            })
    }

    /// Returns the starts of the entries that overlap `range`.
    fn overlapping(&self, range: &KeyRange) -> Vec<Key> {
        let mut starts = Vec::new();
        if let Some((start, entry)) = self.entries.range(..range.start().clone()).next_back()
            && entry.range.overlaps(range)
        {
            starts.push(start.clone());
        }
        starts.extend(
            self.entries
                .range(range.start().clone()..)
                .take_while(|(start, _)| range.end().is_after(start))
                .map(|(start, _)| start.clone()),
        );
        starts
    }

    /// Notes that `range` was proven: what `proven` covers now is done.
    pub(super) fn note_progress(&mut self, range: &KeyRange, proven: &KeyRangeSet) {
        if self.entries.is_empty() {
            return;
        }
        for start in self.overlapping(range) {
            let done = self
                .entries
                .get(&start)
                .is_some_and(|entry| !entry.is_active() || proven.covers(&entry.range));
            if done {
                self.remove(&start);
            }
        }
    }

    /// Returns the starts of the entries whose backoff is over.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Key> {
        self.armed
            .iter()
            .take_while(|(due, _)| *due <= now)
            .map(|(_, start)| start.clone())
            .collect()
    }

    /// Lets an entry be looked at; what failed before may be asked again.
    pub(super) fn queue(&mut self, start: &Key, mark: RequestId) {
        if let Some(entry) = self.remove(start) {
            self.insert(Entry {
                state: EntryState::Queued { mark },
                failed: BTreeSet::new(),
                ..entry
            });
        }
    }

    /// Returns when the next backoff ends.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.armed.first().map(|(due, _)| *due)
    }

    /// Returns the starts of the first entries that are queued.
    pub(super) fn queued(&self, limit: usize) -> Vec<Key> {
        self.queued.iter().take(limit).cloned().collect()
    }

    /// Returns the number of scans under way.
    pub(super) fn scans(&self) -> usize {
        self.scanning.len()
    }

    /// Returns the start of the entry for which PD is asked.
    pub(super) fn scanned_by(&self, request: RequestId) -> Option<Key> {
        self.scanning.get(&request).cloned()
    }

    /// Returns the entries for which PD is asked.
    pub(super) fn scanning(&self) -> impl Iterator<Item = &Entry> {
        self.scanning
            .values()
            .filter_map(|start| self.entries.get(start))
    }

    /// Returns the entries that wait for listings.
    pub(super) fn listing(&self) -> impl Iterator<Item = &Entry> {
        self.listing
            .iter()
            .filter_map(|start| self.entries.get(start))
    }

    /// Returns the number of active entries.
    pub(super) fn active(&self) -> u64 {
        let active =
            self.armed.len() + self.queued.len() + self.scanning.len() + self.listing.len();
        active as u64
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let entries = std::mem::take(self).entries;
        for (_, mut entry) in entries {
            let Entry {
                range: _,
                setbacks: _,
                state,
                suspects: _,
                failed: _,
                is_stale: _,
                is_slow: _,
                not_before,
                cause,
                known,
            } = &mut entry;
            if to.is_over(*not_before) {
                *not_before = Timestamp::ZERO;
            } else {
                to.instant(not_before);
            }
            cause.clear();
            *known = Known::default();
            match state {
                EntryState::Armed { due } => to.instant(due),
                EntryState::Queued { mark } | EntryState::Listing { mark, .. } => to.mark(mark),
                EntryState::Scanning {
                    request,
                    sent,
                    mark,
                } => {
                    to.number(request);
                    to.instant(sent);
                    to.mark(mark);
                }
                EntryState::Resting => {}
            }
            self.insert(entry);
        }
    }

    #[cfg(feature = "arbitrary")]
    pub(super) fn rejoin_all(&mut self) {
        self.unjoined.clone_from(&self.queued);
    }

    /// Checks that no two entries overlap.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut last: Option<&KeyRange> = None;
        for (start, entry) in &self.entries {
            if entry.range.start() != start {
                return Err("a retry entry is filed under a key that is not its start".to_owned());
            }
            if last.is_some_and(|last| last.overlaps(&entry.range)) {
                return Err("two retry entries overlap".to_owned());
            }
            last = Some(&entry.range);
        }
        let active = self.entries.values().filter(|entry| entry.is_active());
        if active.count() as u64 != self.active() {
            return Err("the indexes of the retry book do not fit its entries".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::region::{RegionEpoch, RegionId, StoreId};

    /// The keys from `from` to before `to`; 9 means unbounded, 0 the first key.
    fn keys(from: u8, to: u8) -> KeyRange {
        let start = match from {
            0 => Key::EMPTY,
            byte => Key::from(&[byte]),
        };
        let end = match to {
            9 => EndKey::Unbounded,
            byte => EndKey::Bounded(Key::from(&[byte])),
        };
        KeyRange::new(start, end).expect("not empty")
    }

    fn entry(from: u8, to: u8, tries: u32, state: EntryState) -> Entry {
        Entry {
            setbacks: setbacks(tries),
            suspects: BTreeSet::from([StoreId(u64::from(from))]),
            failed: BTreeSet::from([asked(from.into())]),
            ..Entry::new(keys(from, to), state)
        }
    }

    fn setbacks(tries: u32) -> Setbacks {
        Setbacks {
            tries,
            pause: Duration::from_millis(tries.into()),
        }
    }

    fn asked(region: u64) -> Asked {
        (StoreId(1), RegionId(region), RegionEpoch::default())
    }

    fn armed(millis: u64) -> EntryState {
        let due = Timestamp::from_micros(millis * 1000);
        EntryState::Armed { due }
    }

    fn queued(mark: u64) -> EntryState {
        let mark = RequestId(mark);
        EntryState::Queued { mark }
    }

    fn book(entries: impl IntoIterator<Item = Entry>) -> RetryBook {
        let mut book = RetryBook::default();
        for entry in entries {
            book.insert(entry);
        }
        book.check().expect("sound");
        book
    }

    fn ranges(book: &RetryBook) -> Vec<KeyRange> {
        book.iter().map(|entry| entry.range.clone()).collect()
    }

    #[test]
    fn active_entries_speak_for_their_range_and_resting_ones_give_way() {
        let mut book = book([
            entry(1, 3, 4, EntryState::Resting),
            entry(4, 5, 2, armed(1)),
            entry(6, 9, 7, EntryState::Resting),
        ]);
        let (free, worst) = book.claim(&keys(2, 6));
        assert_eq!(free, [keys(2, 4), keys(5, 6)]);
        assert_eq!(worst, setbacks(4), "the one from 6 on does not overlap");
        // What lies outside stays, with all that was known.
        assert_eq!(ranges(&book), [keys(1, 2), keys(4, 5), keys(6, 9)]);
        let first = book.iter().next().map(|entry| entry.setbacks);
        assert_eq!(first, Some(setbacks(4)));
        let (free, worst) = book.claim(&keys(7, 8));
        assert_eq!((free, worst), (vec![keys(7, 8)], setbacks(7)));
        assert_eq!(
            ranges(&book),
            [keys(1, 2), keys(4, 5), keys(6, 7), keys(8, 9)]
        );
        book.check().expect("sound");
    }

    #[test]
    fn queued_neighbors_with_as_many_failures_are_joined() {
        let mut book = book([
            entry(0, 1, 1, queued(5)),
            entry(1, 2, 1, queued(8)),
            entry(2, 3, 2, queued(6)),
            entry(4, 5, 2, queued(6)),
            entry(5, 6, 2, armed(1)),
        ]);
        book.join_queued();
        assert_eq!(
            ranges(&book),
            [keys(0, 2), keys(2, 3), keys(4, 5), keys(5, 6)]
        );
        let first = book.remove(&Key::EMPTY).expect("joined");
        assert_eq!(first.state, queued(8), "the later mark counts for both");
        assert_eq!(first.suspects, BTreeSet::from([StoreId(0), StoreId(1)]));
        assert_eq!(first.failed, BTreeSet::from([asked(0), asked(1)]));
    }

    #[test]
    fn what_holds_for_one_of_two_neighbors_holds_for_both_once_they_are_joined() {
        for first in [true, false] {
            let of = |from, to, is: bool| Entry {
                is_stale: is,
                is_slow: is,
                ..entry(from, to, 1, queued(5))
            };
            let mut book = book([of(1, 2, first), of(2, 3, !first)]);
            book.join_queued();
            let joined = book.remove(&Key::from(&[1])).expect("joined");
            assert!(joined.is_stale && joined.is_slow, "{first}");
        }
    }

    proptest! {
        /// Whatever order they come in, and whenever neighbors are joined.
        #[test]
        fn joined_a_few_at_a_time_or_all_at_once_is_the_same(
            parts in Just((1..9).collect::<Vec<u8>>()).prop_shuffle(),
            tries in prop::collection::vec(1_u32..3, 9),
            joins in prop::collection::vec(any::<bool>(), 8),
        ) {
            let all = parts.iter().map(|at| {
                entry(*at, *at + 1, tries[usize::from(*at)], queued(5))
            });
            let mut at_once = book(all.clone());
            at_once.join_queued();
            let mut bit_by_bit = RetryBook::default();
            for (entry, join) in all.zip(joins) {
                bit_by_bit.insert(entry);
                if join {
                    bit_by_bit.join_queued();
                }
            }
            bit_by_bit.join_queued();
            bit_by_bit.check().expect("sound");
            prop_assert_eq!(&at_once, &bit_by_bit);
            let touching = bit_by_bit.iter().zip(bit_by_bit.iter().skip(1));
            for (one, next) in touching {
                prop_assert!(!one.touches(next));
            }
        }
    }

    #[test]
    fn two_queued_neighbors_are_enough_to_be_joined() {
        let mut book = book([entry(1, 2, 1, queued(5)), entry(2, 3, 1, queued(5))]);
        book.join_queued();
        assert_eq!(ranges(&book), [keys(1, 3)]);
    }

    #[test]
    fn what_failed_is_noted_where_it_overlaps_and_rests_while_its_backoff_runs() {
        let mut book = book([
            entry(1, 3, 1, armed(1)),
            entry(3, 5, 1, queued(1)),
            entry(6, 7, 1, armed(1)),
        ]);
        let follow_up = FollowUp {
            failed: Some(asked(40)),
            ..FollowUp::at(StoreId(8), Haste::Soon)
        };
        book.note_failed(&keys(2, 4), follow_up, Timestamp::ZERO);
        for (range, rests) in [
            (keys(2, 3), true),
            (keys(0, 9), true),
            (keys(0, 1), false),
            (keys(3, 5), false), // Queued: its backoff is over.
            (keys(6, 7), false), // Something else failed there.
        ] {
            assert_eq!(book.is_resting(&range, &asked(40)), rests, "{range:?}");
        }
        assert!(!book.is_resting(&keys(2, 3), &asked(41)));
        let suspects = |start: u8| {
            let entry = book.entries.get(&Key::from(&[start])).expect("there");
            entry.suspects.contains(&StoreId(8))
        };
        assert_eq!([suspects(1), suspects(3), suspects(6)], [true, true, false]);
        assert!(!RetryBook::default().is_resting(&keys(0, 9), &asked(1)));
    }

    #[test]
    fn progress_ends_what_is_covered_and_what_only_rests() {
        let mut book = book([
            entry(1, 2, 1, EntryState::Resting),
            entry(2, 4, 1, armed(1)),
            entry(4, 6, 1, armed(1)),
            entry(7, 8, 1, EntryState::Resting),
        ]);
        let mut proven = KeyRangeSet::new();
        for range in [keys(1, 5), keys(7, 8)] {
            proven.insert(&range);
        }
        book.note_progress(&keys(1, 5), &proven);
        assert_eq!(
            ranges(&book),
            [keys(4, 6), keys(7, 8)],
            "one is half open, the other was not proven now"
        );
    }

    #[test]
    fn only_armed_entries_are_due_and_the_first_one_counts() {
        let book = book([
            entry(1, 2, 1, armed(30)),
            entry(2, 3, 1, queued(1)),
            entry(3, 4, 1, armed(10)),
            entry(4, 5, 1, EntryState::Resting),
        ]);
        let at = |millis: u64| Timestamp::from_micros(millis * 1000);
        assert_eq!(book.next_due(), Some(at(10)));
        assert_eq!(book.due(at(9)), []);
        assert_eq!(book.due(at(10)), [Key::from(&[3])]);
        assert_eq!(book.due(at(30)).len(), 2);
        assert_eq!(book.active(), 3);
    }

    #[test]
    fn what_failed_before_a_look_may_be_asked_again_in_it() {
        let mut book = book([entry(1, 3, 1, armed(5))]);
        assert!(book.is_resting(&keys(1, 3), &asked(1)));
        book.queue(&Key::from(&[1]), RequestId(4));
        let entry = book.get(&Key::from(&[1])).expect("there");
        assert!(entry.failed.is_empty() && entry.suspects.len() == 1);
        assert_eq!(entry.state, queued(4));
        book.check().expect("sound");
    }
}
