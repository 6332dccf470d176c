//! Properties of the machine, as a black box, over random sequences of events.
//!
//! The tests print their seed; `PROPTEST_RNG_SEED=<number>` fixes it, and what
//! once failed is replayed from `regressions/`. What plays a run, and the monitor
//! that watches it, are in `fuzz::play`, which the fuzz target uses too.
#![cfg(feature = "arbitrary")]

mod normal;
mod plan;
mod plausible;
mod runner;
mod same_again;
mod transitions;
mod unchanged;
mod wild;
