//! Prepare, hold, release: what `run` and `demo` have in common.

mod connect;
mod during;
mod observer;
mod patience;
mod session;
mod verdict;
mod watch;

pub(crate) use connect::{Stopped, connect, security_of};
pub(crate) use observer::Observer;
pub(crate) use session::{HoldPlan, Target, prepare_and_hold};
pub(crate) use verdict::not_prepared;
