//! The floor of a run's standstill; [`Standstill`] says what that is.

mod ledger;
mod standstill;
#[cfg(test)]
mod tests;

pub(super) use ledger::Ledger;
pub(super) use standstill::ratio;
pub use standstill::{Share, Standstill};
