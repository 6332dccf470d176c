//! The simulated cluster as a [`ClusterClient`](crate::cluster::ClusterClient),
//! in the same process and without a network.
//!
//! It runs on tokio's clock, so with a paused clock a run takes no time.

mod cluster;
mod reads;
mod stream;

pub use cluster::SimCluster;
pub use reads::{SimClaims, SimReads};
pub use stream::{SimReceiver, SimSender};
