//! The model of PD and of the stores.
//!
//! [`Cluster`] is driven like the machine: one input ([`Cluster::handle_request`]
//! or [`Cluster::handle_timeout`]), then [`Cluster::poll_answer`] until `None`,
//! then [`Cluster::poll_timeout`] for the next instant at which something
//! happens by itself. Latencies are part of the model: an answer comes out at
//! the instant at which it reaches the client.

mod api;
mod calls;
mod cluster;
mod command;
mod event;
mod history;
mod lease;
mod look;
mod net;
mod node;
mod pd;
mod peer;
mod raft;
mod stream;
mod strike;
mod unborn;

pub use api::{
    Answer, CallId, Code, ModelRegionError, ReadKind, ReadRequest, RegionErrorDetail, Request,
    Status, StreamReply,
};
pub use cluster::Cluster;
pub(in crate::sim) use history::{HoldMark, StreamRecord};
pub use node::StorageMode;
pub(in crate::sim) use peer::{PeerNode, quorum};

#[cfg(test)]
mod tests;
