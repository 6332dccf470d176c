//! A simulated cluster: a deterministic model of PD and TiKV, and ways to talk
//! to it.
//!
//! - [`layout`]: the stores and regions a simulated cluster starts with,
//!   generated or read from a dump of a real cluster.
//! - [`model`]: PD and the stores as a pure state machine in virtual time.
//! - [`fault`]: what goes wrong there.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod fault;
pub mod layout;
pub mod model;
