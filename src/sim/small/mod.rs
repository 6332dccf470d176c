//! Small clusters, abstract and exhaustive: a real
//! [`Machine`](crate::machine::Machine) against two or three stores with two or
//! three regions, in every order of answers, deadlines and faults.
//!
//! The [`model`](super::model) beside it plays a cluster in full, and one run
//! out of very many; this one leaves out all that does not matter for the rules,
//! so that all runs within [`Bounds`] can be looked at:
//!
//! - A region is a raft group of as many peers as there are stores, with logs of
//!   a few entries: who has the one open command, what is committed and applied,
//!   who can be elected by whom, and a leader that is cut off and goes on
//!   claiming and confirming. Only a leader's applying counts; a follower
//!   confirms a wait at once.
//! - A store has one lease, which lasts the shortest time that it can, and
//!   answers one stream in the order of its requests. What a call is answered is
//!   settled when the store takes it in, and the answer arrives any time later.
//! - Time passes from one of the machine's deadlines to the next.
//! - States that differ only in what does not matter are one: instants count
//!   from now, numbers are renamed, counters and jitter are left out (see
//!   [`Machine::normalize`](crate::machine::Machine::normalize)). Once nothing
//!   can change in the cluster any more, calls are taken in when their answers
//!   arrive.
//!
//! The rules are judged by what happened in the cluster and on the way to the
//! machine, never by the machine's books.
//!
//! ```
//! use snapshot_prepare::sim::explore::Limits;
//! use snapshot_prepare::sim::small::{Bounds, SmallCluster};
//!
//! let bounds = Bounds { regions: 1, faults: 0, timeouts: 0, ..Bounds::default() };
//! let report = SmallCluster::new(bounds).explorer().run(&Limits::default());
//! assert!(report.is_complete && report.violation.is_none(), "{report}");
//! ```

mod action;
mod actions;
mod bounds;
mod call;
mod deliver;
mod describe;
mod drive;
mod judge;
mod raft;
mod serve;
mod sight;
mod state;
mod step;
mod store;
mod suite;
mod system;

pub use action::Action;
pub use bounds::{Bounds, Fault};
pub use sight::{Sight, Sights};
pub use state::Small;
pub use suite::{quick, suite};
pub use system::SmallCluster;
