//! What the benchmarks share.
#![allow(dead_code)]

pub mod cpu;
pub mod ranges;
pub mod sets;
