//! Whole runs in virtual time: a [`Machine`](crate::machine::Machine) against a
//! [`Cluster`](crate::sim::model::Cluster), each drawn from one seed, with the
//! oracle's judgment at the end.
//!
//! [`run_seed`] is one run and depends on nothing but its arguments, so that
//! many can go on at once; [`simulate`] goes through a range of seeds and sums
//! up. [`tell`] is one run as a story for people.

mod derive;
mod floor;
mod link;
mod options;
mod report;
mod run;
mod simulate;
mod story;
mod summary;
mod table;
mod trace;

pub use derive::{Setup, Sizes};
pub use floor::{Share, Standstill};
pub use options::{FaultSpec, Options};
pub use report::{Ended, Problem, Report};
pub use run::{run, run_seed, tell};
pub use simulate::simulate;
pub use story::{Line, Mark, Story};
pub use summary::{StandstillSummary, Summary};
