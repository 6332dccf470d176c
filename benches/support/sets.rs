//! The interval set and what it is compared with, behind one function each.

use std::collections::BTreeMap;

use rangemap::RangeSet;
use snapshot_prepare::range::{EndKey, Key, KeyRange, KeyRangeSet};

/// Inserts all ranges into the set of this crate; returns the number of ranges
/// that it ends with.
pub(crate) fn ours(ranges: &[KeyRange]) -> usize {
    let mut set = KeyRangeSet::new();
    for range in ranges {
        set.insert(range);
    }
    set.iter().count()
}

/// The same with `rangemap`, on the very same keys.
pub(crate) fn rangemap(ranges: &[KeyRange]) -> usize {
    let mut set: RangeSet<EndKey> = RangeSet::new();
    for range in ranges {
        set.insert(EndKey::Bounded(range.start().clone())..range.end().clone());
    }
    set.iter().count()
}

/// The same with a plain map that joins nothing: what a coordinator does that
/// keeps one entry per region.
pub(crate) fn plain(ranges: &[KeyRange]) -> usize {
    let mut map: BTreeMap<Key, EndKey> = BTreeMap::new();
    for range in ranges {
        map.insert(range.start().clone(), range.end().clone());
    }
    map.len()
}
