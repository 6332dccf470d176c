//! A machine against a tiny cluster, watched by a monitor that knows the rules:
//! what the property tests and the fuzz target of the machine have in common.

mod answer;
mod bytes;
mod monitor;
mod moves;
mod run;
mod sometimes;
mod wild;
mod world;

pub use answer::{How, REGION_ERRORS, failure};
pub use moves::{Move, Plan};
pub use run::Run;
pub use sometimes::Sometimes;
pub use wild::{Input, follow_wild};
pub use world::{Asked, Change, World, range};
