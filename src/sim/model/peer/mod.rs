//! One replica of a region: its log, its part in elections, what it has
//! applied, and what is waited for there.
//!
//! Raft at the level of its messages. Heartbeats are sent only while the region
//! is awake; whether a peer that keeps quiet still hears its leader is told by
//! the network (`Ctx::leader_alive`), which stands for the idle pings.

mod apply;
mod elect;
mod message;
mod query;
mod quorum;
mod replicate;
mod types;

pub(in crate::sim) use message::Message;
pub(in crate::sim) use quorum::quorum;
pub(in crate::sim) use types::{Ctx, MergeState, Out, PeerNode, PeerTimer, Role, WaitTicket};
