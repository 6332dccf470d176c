use arbitrary::{Arbitrary, Result, Unstructured};

use crate::time::Timestamp;

impl<'a> Arbitrary<'a> for Timestamp {
    /// In the first hour or so, and now and then anywhere.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let micros = if u.ratio(1, 32)? {
            u.arbitrary()?
        } else {
            u.arbitrary::<u32>()?.into()
        };
        Ok(Self::from_micros(micros))
    }
}
