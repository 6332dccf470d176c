use std::time::Duration;

/// Spreads backoffs; a small generator of its own (SplitMix64), since the
/// machine takes no randomness from outside. `None`: nothing is spread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Jitter(Option<u64>);

impl Jitter {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Some(seed))
    }

    /// Lets every backoff last its full time from here on.
    pub(super) const fn switch_off(&mut self) {
        self.0 = None;
    }

    /// Returns a time between half of `duration` and all of it.
    pub(super) fn spread(&mut self, duration: Duration) -> Duration {
        let Some(state) = &mut self.0 else {
            return duration;
        };
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let half = micros / 2;
        Duration::from_micros(micros - Self::next(state) % (half + 1))
    }

    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the generator's reference implementation.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut state = 1_234_567;
        let numbers: Vec<_> = (0..3).map(|_| Jitter::next(&mut state)).collect();
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn spread_stays_between_half_and_all() {
        let mut jitter = Jitter::new(7);
        let all = Duration::from_millis(100);
        let values: Vec<_> = (0..200).map(|_| jitter.spread(all)).collect();
        assert!(
            values
                .iter()
                .all(|value| *value >= all / 2 && *value <= all)
        );
        assert!(values.iter().any(|value| *value < all * 6 / 10));
        assert!(values.iter().any(|value| *value > all * 9 / 10));
        assert_eq!(jitter.spread(Duration::ZERO), Duration::ZERO);
        jitter.switch_off();
        assert!((0..9).all(|_| jitter.spread(all) == all));
    }
}
