//! What the program says: JSON lines or text on standard output, logs on
//! standard error. Each goes through a thread of its own that nobody waits
//! for.

mod event;
mod log;
mod queue;
mod reporter;
mod stdio;
mod text;

pub(crate) use event::{
    CheckedCluster, CheckedStore, CommandStatus, Event, RunResult, ServedStore, Simulated, Stamped,
    Unreleased, Violation,
};
pub(crate) use reporter::Reporter;
