use std::hash::{Hash, Hasher};

/// Returns a hash of 128 bits, so that among some hundred million states no two
/// are taken for one. It is the same in every run.
pub(super) fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = Wide {
        low: 0x243f_6a88_85a3_08d3,
        high: 0x1319_8a2e_0370_7344,
    };
    value.hash(&mut hasher);
    (u128::from(spread(hasher.high)) << 64) | u128::from(spread(hasher.low))
}

/// Two lanes of 64 bits with multipliers of their own.
struct Wide {
    low: u64,
    high: u64,
}

impl Wide {
    fn word(&mut self, word: u64) {
        self.low = (self.low ^ word)
            .wrapping_mul(0x9fb2_1c65_1e98_df25)
            .rotate_left(29);
        self.high = (self.high ^ word.rotate_left(32))
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .rotate_left(31)
            ^ self.low;
    }
}

impl Hasher for Wide {
    fn finish(&self) -> u64 {
        spread(self.low ^ self.high)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.word(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.word(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.word(value as u64);
    }
}

const fn spread(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn different_values_differ_in_both_halves() {
        let mut low = BTreeSet::new();
        let mut high = BTreeSet::new();
        for a in 0..100_u64 {
            for b in 0..100_u8 {
                let hash = fingerprint(&(a, b, "text"));
                low.insert(hash as u64);
                high.insert((hash >> 64) as u64);
            }
        }
        assert_eq!((low.len(), high.len()), (10_000, 10_000));
        assert_ne!(fingerprint(&("a", "bc")), fingerprint(&("ab", "c")));
        assert_eq!(fingerprint(&[1_u8, 2]), fingerprint(&[1_u8, 2]));
    }
}
