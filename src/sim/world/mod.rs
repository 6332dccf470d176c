//! Whole runs in virtual time: a [`Machine`](crate::machine::Machine) against a
//! [`Cluster`](crate::sim::model::Cluster), each drawn from one seed, with the
//! oracle's judgment at the end.
//!
//! [`run_seed`] is one run and depends on nothing but its arguments, so that
//! many can go on at once; [`simulate`] goes through a range of seeds and sums
//! up.

mod derive;
mod link;
mod report;
mod run;
mod simulate;
mod trace;

pub use derive::{Setup, Sizes};
pub use report::{Ended, Problem, Report};
pub use run::{run, run_seed, run_traced};
pub use simulate::{Options, Summary, simulate};
