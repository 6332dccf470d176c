//! The simulated cluster over real gRPC, for the client of this crate, the
//! program, and tools in other languages.
//!
//! [`Served`] listens as PD (three members, one of which leads) and once for
//! each store, as a real cluster does. What is on the wire is what a real one
//! sends: response headers leave with the first answer, refusals come as the
//! same statuses and region errors, and a store that goes down, or a stream that
//! breaks, takes its connection with it. With [`ServerCertificates`] all of it is
//! behind TLS.

mod certificates;
mod convert;
mod listener;
mod members;
mod pd;
mod read_batch;
mod reads;
mod region_error;
mod replies;
mod served;
mod socket;
mod store;
mod stores;

pub use certificates::ServerCertificates;
pub use served::Served;
