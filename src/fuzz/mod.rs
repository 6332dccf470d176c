//! The bodies of the fuzz targets, as ordinary functions, so that the committed
//! corpora are replayed by a plain test too. Not part of the interface.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod machine;
pub mod play;
mod range_set;

pub use machine::machine;
pub use range_set::range_set;
