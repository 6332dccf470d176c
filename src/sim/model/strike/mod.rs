//! How faults strike: when ([`Triggers`]), and what each kind does.

mod actions;
mod aim;
mod change;
mod crash;
mod delay;
mod outage;
mod rival;
mod schedule;
mod script;
mod wait;

pub(super) use schedule::{Moment, Strike, Triggers};
