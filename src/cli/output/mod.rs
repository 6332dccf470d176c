//! What the program says: JSON lines or text on standard output, logs on
//! standard error. Each goes through a thread of its own that nobody waits
//! for.

mod event;
mod lock;
mod log;
mod queue;
mod reporter;
mod simulated;
mod stdio;
mod text;
mod timing;

pub(crate) use event::{
    CheckedCluster, CheckedStore, CommandStatus, Event, RunResult, ServedStore, Stamped, Unreleased,
};
pub(crate) use lock::{LockHolder, LockStatus, LockTold};
pub(crate) use reporter::Reporter;
pub(crate) use simulated::{Part, Problem, Simulated, Standstill, Step};
pub(crate) use timing::{Timing, millis};
