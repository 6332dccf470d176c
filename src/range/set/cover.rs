use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use super::{Gaps, Intersections, Iter};
use crate::range::{EndKey, Key, KeyRange};

/// How many ranges `Debug` shows of a set.
const SHOWN: usize = 8;

/// A set of keys, kept as half-open ranges that are as few as possible: ranges
/// that touch become one.
///
/// Memory goes with the number of separate ranges, not with the number of
/// inserts; a set that covers everything is a single entry. `Debug` hides the
/// keys and shows the first few ranges only.
///
/// ```
/// use snapshot_prepare::range::{KeyRange, KeyRangeSet};
///
/// let range = |start: &'static str, end: &'static str| KeyRange::from_wire(start, end);
/// let mut covered = KeyRangeSet::new();
/// covered.extend(range("", "b"));
/// covered.extend(range("c", ""));
/// assert_eq!(covered.first_gap(&KeyRange::whole()), range("b", "c"));
///
/// covered.extend(range("b", "c"));
/// assert!(covered.is_whole());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct KeyRangeSet {
    /// The end of each range by its start; no two ranges overlap or touch.
    pub(super) ranges: BTreeMap<Key, EndKey>,
}

impl KeyRangeSet {
    /// Returns the set of no key.
    pub const fn new() -> Self {
        Self {
            ranges: BTreeMap::new(),
        }
    }

    /// Returns whether every key of `range` is in the set.
    pub fn covers(&self, range: &KeyRange) -> bool {
        self.at_or_before(range.start())
            .is_some_and(|(_, end)| end >= range.end())
    }

    /// Returns whether `key` is in the set.
    pub fn contains_key(&self, key: &Key) -> bool {
        self.contains_bytes(key.as_bytes())
    }

    /// Returns whether the key that is made of `bytes` is in the set.
    pub fn contains_bytes(&self, bytes: &[u8]) -> bool {
        let at_or_before = (Bound::Unbounded, Bound::Included(bytes));
        let entry = self.ranges.range::<[u8], _>(at_or_before).next_back();
        entry.is_some_and(|(_, end)| end.as_key().is_none_or(|end| end.as_bytes() > bytes))
    }

    /// Returns whether some key of `range` is in the set.
    pub fn overlaps(&self, range: &KeyRange) -> bool {
        self.ranges
            .range::<Key, _>((Bound::Unbounded, before(range.end())))
            .next_back()
            .is_some_and(|(_, end)| end.is_after(range.start()))
    }

    /// Returns the parts of `within` that are not in the set, in order.
    ///
    /// No two of them touch: what lies between is in the set.
    pub fn gaps(&self, within: &KeyRange) -> Gaps<'_> {
        Gaps::new(self, within)
    }

    /// Returns the first part of `within` that is not in the set, `None` when
    /// all of it is.
    pub fn first_gap(&self, within: &KeyRange) -> Option<KeyRange> {
        self.gaps(within).next()
    }

    /// Returns the parts of `within` that are in the set, in order.
    pub fn intersections(&self, within: &KeyRange) -> Intersections<'_> {
        Intersections::new(self, within)
    }

    /// Returns whether every key is in the set.
    pub fn is_whole(&self) -> bool {
        self.ranges
            .first_key_value()
            .is_some_and(|(start, end)| start.is_empty() && *end == EndKey::Unbounded)
    }

    /// Returns whether no key is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of separate ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the ranges in order; no two of them overlap or touch.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// Returns the entry with the greatest start that is not above `key`.
    pub(super) fn at_or_before(&self, key: &Key) -> Option<(&Key, &EndKey)> {
        self.ranges.range::<Key, _>(..=key).next_back()
    }
}

/// Returns the bound on starts that leaves out every range from `end` on.
pub(super) fn before(end: &EndKey) -> Bound<&Key> {
    match end {
        EndKey::Bounded(key) => Bound::Excluded(key),
        EndKey::Unbounded => Bound::Unbounded,
    }
}

impl fmt::Debug for KeyRangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        set.entries(self.iter().take(SHOWN));
        match self.len().checked_sub(SHOWN) {
            None | Some(0) => set.finish(),
            Some(_) => set.finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::new(vec![byte])
    }

    #[test]
    fn debug_hides_keys_and_is_short() {
        let mut set = KeyRangeSet::new();
        assert_eq!(format!("{set:?}"), "{}");
        for start in (0..100).step_by(2) {
            set.extend(KeyRange::new(key(start), EndKey::Bounded(key(start + 1))));
        }
        let shown = format!("{set:?}");
        assert_eq!(shown.matches("[<1 bytes>, <1 bytes>)").count(), SHOWN);
        assert!(shown.ends_with(", ..}"), "{shown}");
    }

    #[test]
    fn a_huge_bounded_key_is_not_the_unbounded_end() {
        let high = Key::new(vec![0xff; 64]);
        let mut set = KeyRangeSet::new();
        set.extend(KeyRange::new(Key::EMPTY, EndKey::Bounded(high.clone())));
        assert!(!set.is_whole());
        assert!(!set.contains_key(&high));
        set.extend(KeyRange::new(high, EndKey::Unbounded));
        assert!(set.is_whole());
    }
}
