//! The bodies of the fuzz targets, as ordinary functions, so that the committed
//! corpora are replayed by a plain test too. Not part of the interface.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(feature = "tikv")]
mod answers;
#[cfg(feature = "sim")]
mod layout;
#[cfg(feature = "lock-storage")]
mod lock;
mod machine;
pub mod play;
mod range_set;
#[cfg(feature = "cli")]
mod text;

#[cfg(feature = "tikv")]
pub use answers::answers;
#[cfg(feature = "sim")]
pub use layout::layout;
#[cfg(feature = "lock-storage")]
pub use lock::lock;
pub use machine::machine;
pub use range_set::range_set;
#[cfg(feature = "cli")]
pub use text::text;
