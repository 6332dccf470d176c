//! The interval set against `rangemap`: processor time for the same inserts.

use std::hint::black_box;

use super::Budget;
use crate::support::cpu::least;
use crate::support::ranges::{Order, ranges};
use crate::support::sets;

/// Runs of each contender; the least counts.
const ROUNDS: usize = 5;

pub(crate) fn measure() -> Vec<Budget> {
    let mut budgets = Vec::new();
    for (order, most) in [(Order::Parallel, 0.60), (Order::Shuffled, 0.75)] {
        for count in [100_000, 1_000_000] {
            let ranges = ranges(count, order);
            let mut ours = || {
                black_box(sets::ours(&ranges));
            };
            let mut theirs = || {
                black_box(sets::rangemap(&ranges));
            };
            let [ours, theirs] = least(ROUNDS, [&mut ours, &mut theirs]);
            budgets.push(Budget::timed(
                format!("set_{}_{}k", order.name(), count / 1000),
                ours.as_secs_f64() / theirs.as_secs_f64(),
                most,
            ));
        }
    }
    budgets
}
