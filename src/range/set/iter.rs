use std::collections::btree_map;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use super::KeyRangeSet;
use super::cover::before;
use crate::range::{EndKey, Key, KeyRange};

/// The ranges of a set in order; made by [`KeyRangeSet::iter`].
#[derive(Clone)]
pub struct Iter<'a>(btree_map::Iter<'a, Key, EndKey>);

impl<'a> Iter<'a> {
    pub(super) fn new(set: &'a KeyRangeSet) -> Self {
        Self(set.ranges.iter())
    }
}

impl Iterator for Iter<'_> {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        self.0.next().and_then(to_range)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<KeyRange> {
        self.0.next_back().and_then(to_range)
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// The parts of a range that are not in a set, in order; made by
/// [`KeyRangeSet::gaps`].
#[derive(Clone)]
pub struct Gaps<'a> {
    /// The first key not looked at yet; `None` when nothing is left.
    rest: Option<Key>,
    /// Where to stop.
    end: EndKey,
    /// The entries that begin behind the first key looked at.
    entries: btree_map::Range<'a, Key, EndKey>,
}

impl<'a> Gaps<'a> {
    pub(super) fn new(set: &'a KeyRangeSet, within: &KeyRange) -> Self {
        let start = within.start();
        let rest = match set.at_or_before(start) {
            Some((_, end)) if end.is_after(start) => end.as_key(),
            _ => Some(start),
        };
        Self {
            rest: rest.cloned(),
            end: within.end().clone(),
            entries: entries_inside(set, within),
        }
    }
}

impl Iterator for Gaps<'_> {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        let start = self.rest.take()?;
        match self.entries.next() {
            Some((entry_start, entry_end)) => {
                self.rest = entry_end.as_key().cloned();
                KeyRange::new(start, EndKey::Bounded(entry_start.clone()))
            }
            None => KeyRange::new(start, self.end.clone()),
        }
    }
}

impl FusedIterator for Gaps<'_> {}

/// The parts of a range that are in a set, in order; made by
/// [`KeyRangeSet::intersections`].
#[derive(Clone)]
pub struct Intersections<'a> {
    /// What the entry that begins at or before the range has in common with it.
    first: Option<KeyRange>,
    /// Where to stop.
    end: EndKey,
    /// The entries that begin inside the range.
    entries: btree_map::Range<'a, Key, EndKey>,
}

impl<'a> Intersections<'a> {
    pub(super) fn new(set: &'a KeyRangeSet, within: &KeyRange) -> Self {
        let first = set.at_or_before(within.start()).and_then(|(_, end)| {
            KeyRange::new(within.start().clone(), end.min(within.end()).clone())
        });
        Self {
            first,
            end: within.end().clone(),
            entries: entries_inside(set, within),
        }
    }
}

impl Iterator for Intersections<'_> {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let (start, end) = self.entries.next()?;
        KeyRange::new(start.clone(), end.min(&self.end).clone())
    }
}

impl FusedIterator for Intersections<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("left", &self.len()).finish()
    }
}

impl fmt::Debug for Gaps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gaps").finish_non_exhaustive()
    }
}

impl fmt::Debug for Intersections<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intersections").finish_non_exhaustive()
    }
}

/// Returns the entries that begin behind the start of `within` and before its
/// end.
fn entries_inside<'a>(
    set: &'a KeyRangeSet,
    within: &KeyRange,
) -> btree_map::Range<'a, Key, EndKey> {
    // The map panics when these bounds are reversed, or equal and both
    // excluded; a `KeyRange` is never empty, so its start lies below its end.
    let bounds = (Bound::Excluded(within.start()), before(within.end()));
    set.ranges.range::<Key, _>(bounds)
}

/// Makes a range of an entry; it always is one, since entries are never empty.
fn to_range((start, end): (&Key, &EndKey)) -> Option<KeyRange> {
    KeyRange::new(start.clone(), end.clone())
}

impl<'a> IntoIterator for &'a KeyRangeSet {
    type Item = KeyRange;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<KeyRange> for KeyRangeSet {
    fn extend<I: IntoIterator<Item = KeyRange>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(&range);
        }
    }
}

impl<'a> Extend<&'a KeyRange> for KeyRangeSet {
    fn extend<I: IntoIterator<Item = &'a KeyRange>>(&mut self, ranges: I) {
        self.insert_run(ranges);
    }
}

impl FromIterator<KeyRange> for KeyRangeSet {
    fn from_iter<I: IntoIterator<Item = KeyRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}

impl<'a> FromIterator<&'a KeyRange> for KeyRangeSet {
    fn from_iter<I: IntoIterator<Item = &'a KeyRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(starts: &[u8]) -> KeyRangeSet {
        let range = |start: &u8| {
            let end = EndKey::Bounded(Key::from(&[start + 1]));
            KeyRange::new(Key::from(&[*start]), end).expect("not empty")
        };
        starts.iter().map(range).collect()
    }

    #[test]
    fn the_number_of_ranges_is_known_at_each_step_from_both_ends() {
        for starts in [&[][..], &[1], &[1, 3], &[1, 3, 5]] {
            let set = set(starts);
            let mut iter = set.iter();
            for left in (0..starts.len()).rev() {
                assert_eq!(iter.size_hint(), (left + 1, Some(left + 1)));
                let next = if left % 2 == 0 {
                    iter.next()
                } else {
                    iter.next_back()
                };
                assert!(next.is_some());
            }
            assert_eq!((iter.len(), iter.next()), (0, None));
            let mut back: Vec<_> = set.iter().rev().collect();
            back.reverse();
            assert_eq!(back, set.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn iterators_show_no_keys() {
        let set = set(&[1, 3]);
        let whole = KeyRange::whole();
        assert_eq!(format!("{:?}", set.iter()), "Iter { left: 2 }");
        assert_eq!(format!("{:?}", set.gaps(&whole)), "Gaps { .. }");
        let intersections = set.intersections(&whole);
        assert_eq!(format!("{intersections:?}"), "Intersections { .. }");
    }
}
