use crate::range::{EndKey, Key, KeyRange};

/// Follows ranges in the order of their start keys and finds what of a target
/// none of them holds.
#[derive(Debug)]
pub(in crate::machine) struct Tiling {
    /// What of the target lies behind all ranges so far.
    rest: Option<KeyRange>,
    gaps: Vec<KeyRange>,
}

impl Tiling {
    pub(in crate::machine) fn new(target: KeyRange) -> Self {
        Self {
            rest: Some(target),
            gaps: Vec::new(),
        }
    }

    /// Takes in the next range, which begins no earlier than the last one.
    pub(in crate::machine) fn add(&mut self, range: &KeyRange) {
        let Some(rest) = self.rest.take() else {
            return;
        };
        let before = EndKey::Bounded(range.start().clone()).min(rest.end().clone());
        self.gaps
            .extend(KeyRange::new(rest.start().clone(), before));
        self.rest = match range.end() {
            EndKey::Unbounded => None,
            EndKey::Bounded(end) => {
                let start: &Key = end.max(rest.start());
                KeyRange::new(start.clone(), rest.end().clone())
            }
        };
    }

    /// Returns what no range held, in order.
    pub(in crate::machine) fn into_gaps(self) -> Vec<KeyRange> {
        let mut gaps = self.gaps;
        gaps.extend(self.rest);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::range::KeyRangeSet;

    fn range() -> impl Strategy<Value = KeyRange> {
        let key = prop::collection::vec(0_u8..4, 0..3);
        (key.clone(), key).prop_filter_map("empty", |(start, end)| KeyRange::from_wire(start, end))
    }

    proptest! {
        #[test]
        fn the_gaps_are_those_of_the_union(
            mut ranges in prop::collection::vec(range(), 0..8),
            target in range(),
        ) {
            ranges.sort_by(|one, other| one.start().cmp(other.start()));
            let mut tiling = Tiling::new(target.clone());
            for range in &ranges {
                tiling.add(range);
            }
            let union: KeyRangeSet = ranges.iter().collect();
            let gaps: KeyRangeSet = tiling.into_gaps().iter().collect();
            let expected: KeyRangeSet = union.gaps(&target).collect();
            prop_assert_eq!(gaps, expected);
        }
    }
}
