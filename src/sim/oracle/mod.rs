//! The properties that a run must have, judged by what happened in the model
//! and never by the machine's books.
//!
//! Whoever runs against a [`Cluster`](crate::sim::model::Cluster) notes there
//! when the hold began ([`Cluster::note_hold`](crate::sim::model::Cluster::note_hold))
//! and when its end was asked for
//! ([`Cluster::note_finish`](crate::sim::model::Cluster::note_finish)), and at
//! the end lets [`judge`] compare what is claimed with what was.

mod bounded_window;
mod bounded_work;
mod clean_end;
mod false_hold;
mod forbidden_target;
mod honest_verdict;
mod judge;
mod late_trust;
mod liveness;

pub(in crate::sim) use false_hold::unsettled;
pub use judge::{Claimed, Verdict, Violation, judge};
