use arbitrary::{Arbitrary, Result, Unstructured};

use crate::range::{EndKey, Key, KeyRange};

impl<'a> Arbitrary<'a> for Key {
    /// At most three bytes, of few values.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let length = u.int_in_range(0..=3)?;
        let mut bytes = Vec::new();
        for _ in 0..length {
            bytes.push(*u.choose(&[0, 1, 64, 128, 192, 254, 255])?);
        }
        Ok(Self::new(bytes))
    }
}

impl<'a> Arbitrary<'a> for EndKey {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match Option::<Key>::arbitrary(u)? {
            Some(key) => Self::Bounded(key),
            None => Self::Unbounded,
        })
    }
}

impl<'a> Arbitrary<'a> for KeyRange {
    /// What would hold no key becomes the range of all keys.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let range = Self::new(u.arbitrary()?, u.arbitrary()?);
        Ok(range.unwrap_or_else(Self::whole))
    }
}
