//! The stores and regions that a simulated cluster starts with.
//!
//! A [`Layout`] is generated from a seed ([`Layout::generate`]) or read from
//! what `pd-ctl region` and PD's HTTP API print ([`Layout::from_pd_json`]).
//! [`Layout::check`] says whether one that was put together by hand is a sound
//! cluster.

mod check;
mod dump;
mod dump_stores;
mod error;
mod generate;
mod table_key;
mod types;

pub use error::{Bound, KeyProblem, LayoutError, RegionProblem};
pub use types::{Layout, LayoutRegion};
