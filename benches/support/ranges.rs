//! Key ranges as a cluster's regions have them, in the orders in which proofs
//! arrive.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use snapshot_prepare::range::{EndKey, Key, KeyRange};

/// Stores that answer in parallel.
const STORES: usize = 30;

/// The order in which ranges are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In key order, as one store alone would answer.
    Sorted,
    /// Each of 30 stores in key order, in turns: the usual case.
    Parallel,
    /// In no order at all.
    Shuffled,
    /// As `Parallel`, but one range in a hundred reaches over its neighbor.
    Overlap,
}

impl Order {
    pub(crate) const ALL: [Self; 4] = [Self::Sorted, Self::Parallel, Self::Shuffled, Self::Overlap];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Parallel => "parallel",
            Self::Shuffled => "shuffled",
            Self::Overlap => "overlap",
        }
    }
}

/// Returns the key of 30 bytes with the number `at`, in order of the numbers.
pub(crate) fn key(at: u64) -> Key {
    let mut bytes = *b"t\x80\x00\x00\x00\x00\x00\x00\xff\x5f\x72\x80\x00\x00\x00\x00\x00\x00\x00\x00\xfa________\x00";
    bytes[12..20].copy_from_slice(&at.to_be_bytes());
    Key::from(&bytes)
}

/// Returns `count` ranges that tile the key space, in key order.
pub(crate) fn tiles(count: u64) -> Vec<KeyRange> {
    let bound = |at| if at == 0 { Key::EMPTY } else { key(at) };
    (0..count)
        .map(|at| {
            let end = match at + 1 == count {
                true => EndKey::Unbounded,
                false => EndKey::Bounded(bound(at + 1)),
            };
            KeyRange::new(bound(at), end).expect("the keys ascend")
        })
        .collect()
}

/// Returns `count` ranges in the given order; always the same ones.
pub(crate) fn ranges(count: u64, order: Order) -> Vec<KeyRange> {
    let mut ranges = tiles(count);
    let mut rng = ChaCha8Rng::seed_from_u64(count);
    match order {
        Order::Sorted => {}
        Order::Shuffled => ranges.shuffle(&mut rng),
        Order::Parallel => ranges = in_turns(ranges, &mut rng),
        Order::Overlap => {
            let ends: Vec<EndKey> = ranges.iter().map(|range| range.end().clone()).collect();
            for at in (0..ranges.len().saturating_sub(1)).step_by(100) {
                let start = ranges[at].start().clone();
                ranges[at] = KeyRange::new(start, ends[at + 1].clone()).expect("the keys ascend");
            }
            ranges = in_turns(ranges, &mut rng);
        }
    }
    ranges
}

/// Deals the ranges out to the stores at random and lets the stores answer in
/// turns, each in key order.
fn in_turns(ranges: Vec<KeyRange>, rng: &mut ChaCha8Rng) -> Vec<KeyRange> {
    let count = ranges.len();
    let mut stores: Vec<usize> = (0..count).map(|at| at % STORES).collect();
    stores.shuffle(rng);
    let mut turns: Vec<(usize, usize, KeyRange)> = Vec::with_capacity(count);
    let mut answered = [0; STORES];
    for (store, range) in stores.into_iter().zip(ranges) {
        turns.push((answered[store], store, range));
        answered[store] += 1;
    }
    turns.sort_unstable_by_key(|(turn, store, _)| (*turn, *store));
    turns.into_iter().map(|(_, _, range)| range).collect()
}
