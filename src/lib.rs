//! Brings a TiKV cluster into the state in which volume snapshots of all its
//! stores fit together, proves it, holds it, and says afterwards whether it
//! truly held.
//!
//! TiKV keeps data in regions, raft groups with replicas on several stores.
//! Copies of the stores' disks fit together only if, while they are taken, no
//! region is split, merged, moved or bulk-loaded, and every region's leader had
//! applied what was in its log before. This crate brings that about:
//!
//! - `driver::Preparer` (feature `driver`) prepares a cluster and returns a
//!   `driver::HoldGuard`; its `finish` is the verdict.
//! - `tikv::TikvCluster` (feature `tikv`) is the cluster: PD and TiKV over gRPC.
//! - [`cluster`] has the traits for a transport of one's own.
//! - [`machine::Machine`] is the protocol itself: a pure state machine without
//!   I/O, clock or randomness, for other runtimes, fuzzers and model checkers.
//! - `sim` (feature `sim`) is a simulated cluster to test against, in virtual
//!   time, in process, or over gRPC.
//! - `lock` (feature `lock`) is the mutual exclusion of runs: one trait, a guard
//!   that tells when the lock is lost, and a conformance suite. Where the lock
//!   lies is the business of `lock-storage` and `lock-etcd`.
//! - `cli` (feature `cli`) is the program `snapshot-prepare`.
//!
//! Not its job: pausing GC and PD's schedulers, choosing the backup timestamp,
//! taking the snapshots.
//!
//! # Features
//! `driver` and `tikv` are on by default; `lock`, `lock-storage`, `lock-etcd`,
//! `sim`, `arbitrary` and `cli` are not. Without any of them only the pure layers
//! are left, and neither tokio nor tonic is in the tree.

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
#[cfg(any(feature = "tikv", feature = "lock-etcd"))]
mod certificate;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(any(feature = "driver", feature = "lock"))]
mod clock;
pub mod cluster;
mod conformance;
#[cfg(feature = "driver")]
pub mod driver;
pub mod error;
#[cfg(feature = "arbitrary")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "lock")]
pub mod lock;
pub mod machine;
#[cfg(any(feature = "tikv", feature = "sim"))]
#[doc(hidden)]
pub mod pb;
pub mod progress;
pub mod range;
pub mod region;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "tikv")]
pub mod tikv;
pub mod time;

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "driver", feature = "tikv"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
