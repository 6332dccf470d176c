//! A suite that every [`ClusterClient`](super::ClusterClient) has to pass.
//!
//! It needs a quiet cluster (no splits, no leader changes, nobody else who
//! prepares) that it may lease for a moment, and no particular executor. It
//! keeps no time, so give the whole a deadline of your own: a check that hangs
//! has failed.
//!
//! ```no_run
//! use snapshot_prepare::cluster::ClusterClient;
//! use snapshot_prepare::cluster::conformance::{Check, Expectation};
//! use snapshot_prepare::region::StoreId;
//!
//! async fn conforms(client: &impl ClusterClient) {
//!     let expected = Expectation {
//!         stores: vec![StoreId(1), StoreId(2), StoreId(3)],
//!         regions: 100,
//!         store: StoreId(1),
//!     };
//!     for check in Check::ALL {
//!         if let Err(violation) = check.run(client, &expected).await {
//!             eprintln!("{violation}");
//!         }
//!     }
//! }
//! ```

mod check;
mod claims;
mod context;
mod lease;
mod listing;
mod read;
mod session;
mod wait;

pub use check::{Check, Expectation, Verdict, Violation, run};
