//! The set of key ranges that says what is covered.
//!
//! The set is kept in its one canonical form: ranges in order, no two of which
//! overlap or touch. So two sets are equal exactly when they hold the same keys,
//! and a range is covered exactly when a single entry contains it.

mod change;
mod cover;
mod iter;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod model;

pub use cover::KeyRangeSet;
pub use iter::{Gaps, Intersections, Iter};
