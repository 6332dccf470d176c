use std::hash::{Hash, Hasher};

use crate::time::Timestamp;

/// A number that stands for all that happened in a run, in order: every effect,
/// event and notice, with its time and all it carries.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Mixer);

impl Trace {
    pub(super) fn step(&mut self, now: Timestamp, what: &impl Hash) {
        now.hash(&mut self.0);
        what.hash(&mut self.0);
    }

    pub(super) fn hash(&self) -> u64 {
        self.0.finish()
    }
}

/// A hash that is the same in every build, also of another machine: no keys, no
/// addresses, and numbers count by their value.
#[derive(Clone, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.write_u64(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        mix(self.0)
    }
}

/// Spreads a number over all bits; one-to-one.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Adds a run to a number that stands for many; their order does not count.
pub(super) fn combine(all: u64, seed: u64, hash: u64) -> u64 {
    all.wrapping_add(mix(mix(seed) ^ hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(steps: &[(u64, &str)]) -> u64 {
        let mut trace = Trace::default();
        for (at, what) in steps {
            trace.step(Timestamp::from_micros(*at), what);
        }
        trace.hash()
    }

    #[test]
    fn what_happened_and_when_and_in_which_order_all_count() {
        let run = [(1, "a"), (2, "b")];
        assert_eq!(hash_of(&run), hash_of(&run));
        for other in [
            vec![(1, "b"), (2, "a")],
            vec![(1, "a"), (3, "b")],
            vec![(1, "a")],
            vec![(1, "ab"), (2, "")],
            vec![],
        ] {
            assert_ne!(hash_of(&run), hash_of(&other), "{other:?}");
        }
    }

    #[test]
    fn the_order_of_the_runs_does_not_count_but_each_run_does() {
        let sum = |runs: &[(u64, u64)]| {
            let add = |all, &(seed, hash): &(u64, u64)| combine(all, seed, hash);
            runs.iter().fold(0, add)
        };
        assert_eq!(sum(&[(1, 7), (2, 9)]), sum(&[(2, 9), (1, 7)]));
        assert_ne!(sum(&[(1, 7), (2, 9)]), sum(&[(1, 9), (2, 7)]));
        assert_ne!(sum(&[(1, 7), (2, 7)]), sum(&[(3, 7), (4, 7)]));
    }
}
