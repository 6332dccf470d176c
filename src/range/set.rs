use super::KeyRange;
/// x
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct KeyRangeSet {
    ranges: Vec<KeyRange>,
}
/// x
#[derive(Debug)]
pub struct Gaps;
