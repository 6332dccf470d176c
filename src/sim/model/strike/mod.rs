//! How faults strike: when ([`Triggers`]), and what each kind does.

mod actions;
mod change;
mod outage;
mod rival;
mod schedule;
mod script;

pub(super) use schedule::{Moment, Strike, Triggers};
