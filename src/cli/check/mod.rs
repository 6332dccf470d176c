//! Looks whether a run could start now, without changing anything.

mod command;
mod look;
mod pd_view;
mod problem;
mod store_view;

pub(super) use command::check;
