//! What goes wrong.
//!
//! - [`Failure`]: one call or stream failed. Made by a cluster client, judged
//!   by the machine, which decides what it means in the present phase.
//! - [`RegionError`](crate::region::RegionError): a store answered, but not with success, for one region.
//! - [`Error`]: what a user of the library gets; says what happened, to which
//!   store or region, and whether trying again can help.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(any(feature = "tikv", feature = "lock-etcd", feature = "sim"))]
mod causes;
mod failure;
mod kind;
#[cfg(any(feature = "tikv", feature = "lock"))]
mod plain;
mod user;

#[cfg(any(feature = "tikv", feature = "lock-etcd", feature = "sim"))]
pub(crate) use causes::with_causes;
pub use failure::{Failure, FailureKind};
pub use kind::ErrorKind;
#[cfg(any(feature = "tikv", feature = "lock"))]
pub(crate) use plain::without_controls;
pub use user::Error;
