//! What goes wrong in a simulated cluster: kinds, levels, and plans drawn from
//! a seed.

mod kind;
mod plan;
mod timing;

pub use kind::{FaultKind, FaultLevel};
pub use plan::FaultPlan;
pub use timing::Timing;
pub(in crate::sim) use timing::log_uniform;
