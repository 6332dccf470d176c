//! Brings a TiKV cluster into the state in which volume snapshots of all its
//! stores fit together, proves it, holds it, and says afterwards whether it
//! truly held.

pub mod cluster;
#[cfg(feature = "driver")]
pub mod driver;
pub mod error;
pub mod machine;
#[cfg(any(feature = "tikv", feature = "sim"))]
#[doc(hidden)]
pub mod pb;
pub mod progress;
pub mod range;
pub mod region;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "tikv")]
pub mod tikv;
pub mod time;
