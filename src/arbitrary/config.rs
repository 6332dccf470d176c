use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::machine::{Config, ForeignLease, Proof};

impl<'a> Arbitrary<'a> for ForeignLease {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(*u.choose(&[Self::Proceed, Self::Refuse])?)
    }
}

impl<'a> Arbitrary<'a> for Proof {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(*u.choose(&[Self::Read, Self::Claims])?)
    }
}

impl<'a> Arbitrary<'a> for Config {
    /// Only what [`Config::validate`] accepts.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let lease = u.int_in_range(5..=3600)?;
        let mut millis = |from: u64, to: u64| u.int_in_range(from..=to).map(Duration::from_millis);
        let margin = millis(1000, lease * 500)?;
        let prepare_timeout = millis(1, 600_000)?;
        let hold_timeout = millis(1, 600_000)?;
        let ask_timeout = millis(1, 60_000)?;
        let read_timeout = millis(1, 60_000)?;
        let call_timeout = millis(1, 60_000)?;
        let settle = millis(1, 10_000)?;
        let backoff_min = millis(1, 1000)?;
        let backoff_max = millis(1000, 10_000)?;
        Ok(Self {
            target: u.arbitrary()?,
            lease: Duration::from_secs(lease),
            margin,
            prepare_timeout,
            hold_timeout,
            ask_timeout,
            read_timeout,
            call_timeout,
            settle,
            backoff_min,
            backoff_max,
            window: u.int_in_range(1..=600)?,
            page_size: u.int_in_range(1..=600)?,
            foreign_lease: u.arbitrary()?,
            proof: u.arbitrary()?,
            seed: u.arbitrary()?,
        })
    }
}
