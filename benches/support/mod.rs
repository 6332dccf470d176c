//! What the benchmarks share.
#![allow(dead_code)]

pub(crate) mod cpu;
pub(crate) mod feed;
pub(crate) mod ranges;
pub(crate) mod sets;
