//! Properties of the machine, as a black box, over random sequences of events.
//!
//! The tests print their seed; `PROPTEST_RNG_SEED=<number>` fixes it, and what
//! once failed is replayed from `regressions/`.

mod answer;
mod monitor;
mod plan;
mod plausible;
mod run;
mod runner;
mod same_again;
mod transitions;
mod wild;
mod world;
