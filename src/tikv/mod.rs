//! The client for a real cluster: PD and TiKV over gRPC.
//!
//! [`TikvCluster::connect`] learns the cluster's id from PD; the handle it
//! returns implements [`ClusterClient`](crate::cluster::ClusterClient). Calls
//! follow PD's leader by themselves, and each is one attempt: whether it is
//! repeated, and how long it may take, is the caller's business.
//!
//! Every prepare stream has a connection of its own. Listings and leader reads
//! share another one per store, with a large connection window, since a flood of
//! small answers that lie unread closes the connection they came on. Leader
//! reads are put many into a message, which costs the store and the client half
//! as much, or less; a store that does not serve that is asked one by one.

mod address;
mod chunks;
mod cluster;
mod codec;
mod convert;
mod dial;
mod listing;
mod members;
mod options;
mod pd;
mod peer;
#[cfg(feature = "arbitrary")]
pub(crate) mod raw;
mod reads;
mod region_error;
mod security;
mod split;
mod status;
mod stores;
mod stream;

#[cfg(feature = "cli")]
pub(crate) use address::check_endpoint;
pub use cluster::TikvCluster;
pub use listing::TikvClaims;
pub use options::Options;
pub use reads::TikvReads;
pub use security::Security;
pub use stream::{TikvReceiver, TikvSender};
