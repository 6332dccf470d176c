//! A small explorer of state spaces: all that can happen, in every order,
//! within bounds.
//!
//! A [`System`] says how it starts, what can happen in a state and what comes of
//! it; [`Explorer`] visits every state breadth first and checks properties there:
//! *always* ones, of which a violation is told by the shortest way there, and
//! *sometimes* ones, which have to be seen at least once.
//! [`small`](super::small) is the system this was made for.
//!
//! ```
//! use snapshot_prepare::sim::explore::{Explorer, Limits, System};
//!
//! /// Two counters that are only ever to differ by one.
//! struct Counters;
//!
//! impl System for Counters {
//!     type State = (u8, u8);
//!     type Action = &'static str;
//!
//!     fn start(&self) -> Vec<(u8, u8)> {
//!         vec![(0, 0)]
//!     }
//!
//!     fn actions(&self, state: &(u8, u8)) -> Vec<&'static str> {
//!         if *state == (3, 3) { vec![] } else { vec!["left", "right"] }
//!     }
//!
//!     fn step(&self, state: &(u8, u8), action: &&'static str) -> Option<(u8, u8)> {
//!         match *action {
//!             "left" if state.0 <= state.1 => Some((state.0 + 1, state.1)),
//!             "right" if state.1 <= state.0 => Some((state.0, state.1 + 1)),
//!             _ => None,
//!         }
//!     }
//!
//!     fn describe(&self, _: &(u8, u8), action: &&'static str) -> String {
//!         format!("one more on the {action}")
//!     }
//! }
//!
//! let report = Explorer::new(Counters)
//!     .always("close", |state| match state.0.abs_diff(state.1) {
//!         0 | 1 => Ok(()),
//!         apart => Err(format!("{apart} apart")),
//!     })
//!     .sometimes("both at three", |state| *state == (3, 3))
//!     .run(&Limits::default());
//! assert!(report.is_good() && report.is_complete, "{report}");
//! ```

mod explorer;
mod hash;
mod report;
mod system;

pub use explorer::{Explorer, Limits};
pub use report::{Report, Sight, Step, Trail};
pub use system::System;
