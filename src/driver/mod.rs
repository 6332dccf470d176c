//! Runs a [`Machine`](crate::machine::Machine) against a
//! [`ClusterClient`](crate::cluster::ClusterClient) on tokio.
//!
//! [`Preparer::prepare`] brings the cluster into the hold and returns a
//! [`HoldGuard`]; [`HoldGuard::lost`] tells when the hold is lost, and
//! [`HoldGuard::finish`] ends it and gives the verdict.
//!
//! How it works: a loop owns the machine, takes what happened from an inbox,
//! carries out what the machine asks for, and sleeps until the machine's next
//! deadline. It never waits for anything else. Each prepare stream has a task
//! that reads and one that writes, each call has a task; when the loop ends,
//! all of them do. What others want to know (progress, logs) is left on a board
//! from which a reporter takes it, so that nobody who looks can hold up a
//! renewal.

mod board;
mod builder;
mod calls;
#[cfg(test)]
mod death;
mod error;
mod guard;
mod host;
mod inbox;
mod panic;
mod preparer;
mod queue;
mod run;
mod signal;
mod status;
mod streams;

pub use crate::clock::Clock;
pub use builder::Builder;
pub use error::{FinishError, PrepareError};
pub use guard::HoldGuard;
pub use preparer::Preparer;
pub use signal::Canceller;
