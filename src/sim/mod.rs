//! A simulated cluster: a deterministic model of PD and TiKV, and ways to talk
//! to it.
//!
//! - [`layout`]: the stores and regions a simulated cluster starts with,
//!   generated or read from a dump of a real cluster.

pub mod layout;
