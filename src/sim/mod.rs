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
//!
//! # Testing a tool of your own
//! Whatever holds a cluster for snapshots can be run against it, with faults and
//! properties of its own choice; nothing of this crate's machine is needed. The
//! page `docs/testing-your-own-tool.md` and the example `simulate_own_tool` show
//! all of it; this is the core:
//!
//! ```
//! use std::time::Duration;
//!
//! use snapshot_prepare::cluster::ClusterClient;
//! use snapshot_prepare::progress::PhaseName;
//! use snapshot_prepare::sim::client::SimCluster;
//! use snapshot_prepare::sim::fault::{FaultKind, FaultLevel, FaultPlan};
//! use snapshot_prepare::sim::layout::Layout;
//! use snapshot_prepare::sim::oracle::{Claimed, Verdict, judge};
//!
//! // With the clock paused, virtual time: waiting takes no time.
//! # fn main() -> std::io::Result<()> {
//! let runtime = tokio::runtime::Builder::new_current_thread()
//!     .enable_time()
//!     .start_paused(true)
//!     .build()?;
//! runtime.block_on(async {
//!     let layout = Layout::generate(3, 20, 3, 7);
//!     let faults = FaultPlan::derive(FaultLevel::Light, 7)
//!         .without(FaultKind::Merge)
//!         .aimed(FaultKind::StreamCut, PhaseName::Hold, 1);
//!     let cluster = SimCluster::start(&layout, faults, 7);
//!
//!     // A tool that says it holds, and has done nothing for it.
//!     let stores = cluster.list_stores().await.expect("PD answers");
//!     cluster.with_model(|model| model.note_hold(model.now()));
//!     tokio::time::sleep(Duration::from_secs(3600)).await;
//!     cluster.with_model(|model| model.note_finish(model.now()));
//!
//!     let claimed = Claimed {
//!         verdict: Verdict::Good,
//!         stores: stores.iter().map(|store| store.id).collect(),
//!         ..Claimed::default()
//!     };
//!     let violations = cluster.with_model(|model| judge(model, &claimed));
//!     assert!(violations.iter().any(|found| found.property == "no false hold"));
//! });
//! # Ok(())
//! # }
//! ```
//!
//! Over gRPC it is [`server::Served`] (or the program's `serve`), for tools in
//! any language, in real time; without tokio, [`model::Cluster`] is driven by
//! hand. This crate's own machine goes through many seeds with
//! [`world::simulate`].

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
