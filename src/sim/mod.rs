//! A simulated cluster: a deterministic model of PD and TiKV, and ways to talk
//! to it.
//!
//! - [`layout`]: the stores and regions a simulated cluster starts with,
//!   generated or read from a dump of a real cluster.
//! - [`model`]: PD and the stores as a pure state machine in virtual time.
//! - [`fault`]: what goes wrong there.
//! - [`oracle`]: the properties that a run against it must have.
//! - [`world`]: a [`Machine`](crate::machine::Machine) against it in virtual
//!   time, seed by seed.
//! - [`explore`]: a small explorer of state spaces, for models of any kind.
//! - [`small`]: small clusters, abstract, with all that can happen to them.
//! - [`client`]: that cluster as a [`ClusterClient`](crate::cluster::ClusterClient),
//!   in the same process.
//! - [`server`]: that cluster over gRPC on loopback.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "runs in real time"
)]
pub mod client;
pub mod explore;
pub mod fault;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "runs in real time"
)]
mod hub;
pub mod layout;
mod mapping;
pub mod model;
pub mod oracle;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "runs in real time"
)]
pub mod server;
pub mod small;
pub mod world;
