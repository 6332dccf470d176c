//! `Arbitrary` for what goes into a machine, so that fuzz harnesses can make
//! events and configurations from bytes.
//!
//! Numbers and keys are mostly small, so that events meet what the machine
//! knows.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod config;
mod event;
mod range;
mod region;

use arbitrary::{Result, Unstructured};

/// Returns a number that is mostly small.
fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.ratio(1, 32)? {
        u.arbitrary()
    } else {
        u.int_in_range(0..=31)
    }
}
