//! What the driver needs of a cluster, as traits.
//!
//! [`ClusterClient`] is implemented by the gRPC client for a real cluster, by
//! the simulated cluster, and by whoever has a transport of their own. The
//! types are free of any wire format. Nothing here retries or keeps time: a
//! call is made once, and how long it may take and whether it is repeated is
//! decided by the machine.

mod client;
pub mod conformance;
mod message;

pub use client::{Batches, ClusterClient, PrepareReceiver, PrepareSender};
pub use message::{StreamAnswer, StreamRequest};
