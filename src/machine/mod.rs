//! The explicit state machine.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod config;
mod core;
mod effect;
mod event;
mod outcome;

pub use config::{Config, ForeignLease, Proof};
pub use core::Machine;
pub use effect::{Effect, RequestId};
pub use event::Event;
pub use outcome::{Notice, Outcome};
