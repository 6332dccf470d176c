use std::fmt;

use bytes::Bytes;

use super::{EndKey, Key};

/// A half-open range of keys, `[start, end)`; never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    start: Key,
    end: EndKey,
}

impl KeyRange {
    /// Returns `[start, end)`, or `None` when it would hold no key.
    pub fn new(start: Key, end: EndKey) -> Option<Self> {
        end.is_after(&start).then_some(Self { start, end })
    }

    /// Reads a range as the wire has it (an empty end means unbounded), or
    /// `None` when it would hold no key.
    pub fn from_wire(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Option<Self> {
        Self::new(Key::new(start), EndKey::from_wire(end))
    }

    /// Returns the range of all keys.
    pub const fn whole() -> Self {
        Self {
            start: Key::EMPTY,
            end: EndKey::Unbounded,
        }
    }

    /// Returns the first key.
    pub fn start(&self) -> &Key {
        &self.start
    }

    /// Returns the end, exclusive.
    pub fn end(&self) -> &EndKey {
        &self.end
    }

    /// Returns whether this is the range of all keys.
    pub fn is_whole(&self) -> bool {
        self.start.is_empty() && self.end == EndKey::Unbounded
    }

    /// Returns whether `key` lies in the range.
    pub fn contains_key(&self, key: &Key) -> bool {
        self.start <= *key && self.end.is_after(key)
    }

    /// Returns whether every key of `other` lies in the range.
    pub fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns whether the two ranges share a key.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.end.is_after(&other.start) && other.end.is_after(&self.start)
    }

    /// Returns the keys that both ranges hold, `None` when there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        Self::new(
            self.start.clone().max(other.start.clone()),
            self.end.clone().min(other.end.clone()),
        )
    }

    /// Returns a form for messages that shows the keys in hex.
    pub fn reveal(&self) -> RevealedRange<'_> {
        RevealedRange(self)
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            EndKey::Bounded(end) => write!(f, "[{}, {end})", self.start),
            EndKey::Unbounded => write!(f, "[{}, +inf)", self.start),
        }
    }
}

impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Shows a range with its keys in hex; made by [`KeyRange::reveal`].
#[derive(Debug, Clone, Copy)]
pub struct RevealedRange<'a>(&'a KeyRange);

impl fmt::Display for RevealedRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.0.start.reveal();
        match &self.0.end {
            EndKey::Bounded(end) => write!(f, "[{start}, {})", end.reveal()),
            EndKey::Unbounded => write!(f, "[{start}, +inf)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: &str) -> KeyRange {
        KeyRange::from_wire(start.to_owned(), end.to_owned()).expect("not empty")
    }

    #[test]
    fn an_empty_or_reversed_range_does_not_exist() {
        assert_eq!(KeyRange::from_wire("b", "b"), None);
        assert_eq!(KeyRange::from_wire("b", "a"), None);
        assert!(KeyRange::from_wire("", "").is_some_and(|all| all.is_whole()));
    }

    #[test]
    fn touching_ranges_do_not_overlap() {
        assert!(!range("a", "b").overlaps(&range("b", "c")));
        assert!(range("a", "c").overlaps(&range("b", "")));
        assert_eq!(
            range("a", "c").intersection(&range("b", "")),
            Some(range("b", "c"))
        );
        assert_eq!(range("a", "b").intersection(&range("b", "")), None);
    }

    #[test]
    fn nothing_bounded_contains_the_unbounded() {
        assert!(!range("a", "zzzz").contains(&range("b", "")));
        assert!(range("a", "").contains(&range("b", "")));
    }

    #[test]
    fn only_what_has_no_bound_at_either_side_is_whole() {
        assert!(KeyRange::whole().is_whole());
        for partial in [range("a", ""), range("", "b"), range("a", "b")] {
            assert!(!partial.is_whole(), "{}", partial.reveal());
        }
    }

    #[test]
    fn a_range_holds_its_start_and_not_its_end() {
        let held = |range: &KeyRange| {
            let keys = ["", "a", "b", "c", "d"].map(str::to_owned).map(Key::new);
            keys.map(|key| range.contains_key(&key))
        };
        assert_eq!(held(&range("b", "d")), [false, false, true, true, false]);
        assert_eq!(held(&range("b", "")), [false, false, true, true, true]);
        assert_eq!(held(&KeyRange::whole()), [true; 5]);
    }

    #[test]
    fn keys_show_only_when_revealed() {
        assert_eq!(range("a", "").to_string(), "[<1 bytes>, +inf)");
        assert_eq!(range("a", "b").reveal().to_string(), "[61, 62)");
    }
}
