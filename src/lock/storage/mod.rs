//! A lock that is an object on storage, beside the backup.

mod attempt;
mod expiry;
mod failure;
mod family;
mod held;
#[cfg(test)]
mod interleaving;
mod lock;
mod look;
mod metadata;
mod open;
mod options;
#[cfg(feature = "arbitrary")]
pub(crate) mod raw;
mod shelf;
mod support;
mod txn_id;

pub use family::LockMode;
pub use lock::StorageLock;
pub use options::{StorageOptions, WallClock};
