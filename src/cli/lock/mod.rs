//! Locks, as `run --lock` and as a tool of their own.

mod command;
mod event;
mod held;
mod open;
mod run;
mod take;

pub(crate) use command::lock;
pub(crate) use run::{LockLost, RunLocked, lock_of};
