//! A monitor that sees what goes into a machine and what comes out, never its
//! books, and checks the rules on that alone.

mod attempt;
mod effects;
mod events;
mod hold;
mod ledger;
mod watch;

pub(super) use watch::Monitor;
