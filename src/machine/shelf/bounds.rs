use std::fmt;

use super::column::Column;
use crate::range::{EndKey, Key, KeyRange};

/// Key ranges, packed: of an end only what it does not share with the start is
/// kept, since the bounds of a region have much in common.
///
/// `Debug` hides the keys.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Bounds {
    /// Per range: the length of the start, what is known of the end (0 for
    /// none, else one more than the number of bytes shared), the start, the rest
    /// of the end.
    bytes: Vec<u8>,
    /// Where each range begins in `bytes`.
    offsets: Column,
    len: usize,
}

/// One range as it is packed.
struct Packed<'a> {
    start: &'a [u8],
    /// The bytes that the end shares with the start, and its other bytes.
    end: Option<(usize, &'a [u8])>,
}

impl Bounds {
    pub(super) fn push(&mut self, range: &KeyRange) {
        self.offsets.push(self.bytes.len() as u64);
        self.len += 1;
        let start = range.start().as_bytes();
        put_number(&mut self.bytes, start.len());
        let end = range.end().as_key().map(Key::as_bytes);
        let shared = end.map_or(0, |end| shared_prefix(start, end));
        put_number(&mut self.bytes, end.map_or(0, |_| shared + 1));
        self.bytes.extend_from_slice(start);
        if let Some(end) = end {
            self.bytes.extend_from_slice(&end[shared..]);
        }
    }

    /// Returns the start of the range at `row`, which exists.
    pub(super) fn start(&self, row: usize) -> &[u8] {
        self.packed(row).start
    }

    /// Returns the range at `row`, which exists.
    pub(super) fn range(&self, row: usize) -> KeyRange {
        let packed = self.packed(row);
        let end = match packed.end {
            None => EndKey::Unbounded,
            Some((shared, rest)) => {
                let mut end = Vec::with_capacity(shared + rest.len());
                end.extend_from_slice(&packed.start[..shared]);
                end.extend_from_slice(rest);
                EndKey::Bounded(Key::new(end))
            }
        };
        // What was packed was a range.
        KeyRange::new(Key::from(packed.start), end).unwrap_or_else(KeyRange::whole)
    }

    /// Returns whether the range at `row`, which exists, is `range`.
    pub(super) fn is(&self, row: usize, range: &KeyRange) -> bool {
        let packed = self.packed(row);
        packed.start == range.start().as_bytes()
            && match (packed.end, range.end().as_key()) {
                (None, None) => true,
                (Some((shared, rest)), Some(end)) => {
                    let end = end.as_bytes();
                    end.len() == shared + rest.len()
                        && end.starts_with(&packed.start[..shared])
                        && end.ends_with(rest)
                }
                _ => false,
            }
    }

    fn packed(&self, row: usize) -> Packed<'_> {
        let from = self.offset(row);
        let to = match row + 1 < self.len {
            true => self.offset(row + 1),
            false => self.bytes.len(),
        };
        let (start_len, bytes) = take_number(&self.bytes[from..to]);
        let (known, bytes) = take_number(bytes);
        let (start, rest) = bytes.split_at(start_len);
        Packed {
            start,
            end: known.checked_sub(1).map(|shared| (shared, rest)),
        }
    }

    fn offset(&self, row: usize) -> usize {
        self.offsets.get(row) as usize
    }

    /// Gives back what was kept for growing.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.offsets.shrink();
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} ranges>", self.len)
    }
}

fn shared_prefix(start: &[u8], end: &[u8]) -> usize {
    start.iter().zip(end).take_while(|(a, b)| a == b).count()
}

/// Writes a number in groups of seven bits, the lowest first.
fn put_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number that `put_number` wrote; returns it and what follows.
fn take_number(bytes: &[u8]) -> (usize, &[u8]) {
    let (mut number, mut shift) = (0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return (number, &bytes[at + 1..]);
        }
    }
    (number, &[])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = KeyRange> {
        // Long keys as well, whose lengths take two bytes.
        let key = prop_oneof![
            4 => prop::collection::vec(0_u8..3, 0..5),
            1 => prop::collection::vec(any::<u8>(), 100..300),
        ];
        (key.clone(), key).prop_filter_map("empty", |(start, end)| KeyRange::from_wire(start, end))
    }

    proptest! {
        #[test]
        fn ranges_come_back_as_they_went_in(ranges in prop::collection::vec(range(), 1..20)) {
            let mut bounds = Bounds::default();
            for range in &ranges {
                bounds.push(range);
            }
            for (row, range) in ranges.iter().enumerate() {
                prop_assert_eq!(bounds.start(row), range.start().as_bytes());
                prop_assert_eq!(&bounds.range(row), range);
                for (other_row, other) in ranges.iter().enumerate() {
                    let same = range == other;
                    prop_assert_eq!(bounds.is(row, other), same, "{} {}", row, other_row);
                }
            }
        }
    }

    #[test]
    fn what_an_end_shares_with_its_start_is_kept_once() {
        let start = vec![7; 100];
        let end = [start.clone(), vec![1]].concat();
        let mut bounds = Bounds::default();
        bounds.push(&KeyRange::from_wire(start, end).expect("not empty"));
        // The start, one byte of the end, and two lengths.
        assert_eq!(bounds.bytes.len(), 103);
    }

    #[test]
    fn debug_hides_the_keys() {
        let mut bounds = Bounds::default();
        bounds.push(&KeyRange::from_wire("secret", "").expect("not empty"));
        assert_eq!(format!("{bounds:?}"), "<1 ranges>");
    }
}
