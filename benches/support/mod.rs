//! What the benchmarks share.
#![allow(dead_code)]

#[cfg(all(feature = "driver", feature = "tikv", feature = "sim"))]
pub(crate) mod client;
pub(crate) mod cpu;
pub(crate) mod feed;
pub(crate) mod loaded;
pub(crate) mod ranges;
#[cfg(feature = "sim")]
pub(crate) mod rounds;
#[cfg(feature = "sim")]
pub(crate) mod server;
pub(crate) mod sets;
#[cfg(feature = "sim")]
pub(crate) mod standstill;
