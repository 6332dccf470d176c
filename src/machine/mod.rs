//! The explicit state machine of a run, without I/O, clock or randomness of its
//! own.
//!
//! # How to drive it
//! One input, [`Machine::handle_event`] or [`Machine::handle_timeout`]; then
//! drain [`Machine::poll_effect`] (and [`Machine::poll_notice`]) until `None`
//! and carry the effects out; then ask [`Machine::poll_timeout`] for the next
//! deadline; and so on until [`Machine::outcome`] says how it ended. The machine
//! is total: any event is accepted in any phase, and one that comes too late or
//! fits nothing is counted and ignored. It keeps all deadlines itself.
//!
//! # Phases
//! `Connect → Suspend → WaitApply → Verify → Hold → Release → Closed`. Doubt
//! before `Hold` leads through `Release` back to `Connect`; failure and cancel
//! lead through `Release` to `Closed`, so that there is one path for clean-up.
//!
//! # What proves a region
//! All stores are leased; then the region's wait is confirmed by a store; then
//! that store serves a linearizable read as its leader. The read shows that no
//! newer leader was elected before the leases and that this one has committed
//! in its own term; the wait covers what it had proposed itself. So whatever of
//! the refused kind was proposed before is applied there, or can never be
//! committed (tikv `components/raftstore/src/store/fsm/peer.rs`). At the end
//! all stores are listed again, since merges begun earlier go on under a lease.
//!
//! # For model checkers
//! A machine is `Clone + Eq + Hash`, and [`Machine::normalize`] brings it into a
//! form in which two that will behave alike are equal.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod asking;
mod call;
mod claims;
mod config;
mod connect;
mod core;
mod drive;
mod effect;
mod entry;
mod event;
mod follow_up;
mod invariants;
mod jitter;
mod known;
mod lease;
mod listing;
mod look;
mod normal;
mod outcome;
mod phase;
mod policy;
mod pump;
mod reads;
mod release;
mod report;
mod retry;
mod session;
mod shelf;
mod straggler;
mod timer;
mod verify;
mod waiting;

pub use config::{Config, ForeignLease, Proof};
pub use drive::Machine;
pub use effect::{Effect, RequestId};
pub use event::Event;
pub use normal::Renaming;
pub use outcome::{Notice, Outcome};
pub use timer::Timer;
