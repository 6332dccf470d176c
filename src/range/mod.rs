//! Keys, half-open key ranges, and the set of ranges that says what is covered.
//!
//! A key is an opaque string of bytes, compared bytewise. On the wire an empty
//! end key means 'no upper bound'; here that is [`EndKey::Unbounded`], never an
//! empty key, so that it cannot be compared wrongly.
//!
//! Keys are user data: `Debug` and `Display` show their length only. Whoever is
//! allowed to see them asks for it with [`Key::reveal`] or [`KeyRange::reveal`].

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod key;
mod key_range;
mod set;

pub use key::{EndKey, Key};
pub use key_range::{KeyRange, RevealedRange};
pub use set::{Gaps, Intersections, Iter, KeyRangeSet};
