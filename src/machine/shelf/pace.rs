use std::time::Duration;

/// A store that has not answered half of a batch of reads by then is overloaded.
const SLOW: Duration = Duration::from_secs(1);
/// One that has by then could do with more.
const FAST: Duration = Duration::from_millis(500);
/// The fewest reads that are in flight where there are so many.
const FEWEST: u32 = 16;
/// The smallest batch whose time says anything about the store and not about one of
/// its regions. A batch goes out when there is room for half of what may be in
/// flight, so at the slowest pace they are that small, and a store that is fast
/// again has to be told by them.
pub(in crate::machine) const TELLING: u32 = FEWEST / 2;

/// How many reads a store is given at once: the whole window, unless it cannot
/// keep up. Reads that lie in its queue for longer than their deadline would be
/// asked for once more and make it slower still.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::machine) struct ReadPace {
    /// `None` for the window.
    most: Option<u32>,
}

impl ReadPace {
    /// Returns the most reads that may be in flight.
    pub(in crate::machine) fn most(self, window: u32) -> u32 {
        self.most.map_or(window, |most| most.min(window))
    }

    /// Takes in how long the store took for half of a batch of `size` reads.
    pub(in crate::machine) fn note_half(&mut self, size: u32, took: Duration, window: u32) {
        if size < TELLING {
            return;
        }
        let most = self.most(window);
        if took > SLOW {
            self.set(most / 2, window);
        } else if took < FAST {
            self.set(most.saturating_mul(2), window);
        }
    }

    /// Takes in that a batch of `size` reads was not answered at all in time.
    pub(in crate::machine) fn note_silence(&mut self, size: u32, window: u32) {
        if size >= TELLING {
            self.set(self.most(window) / 4, window);
        }
    }

    fn set(&mut self, most: u32, window: u32) {
        let most = most.max(FEWEST.min(window));
        self.most = (most < window).then_some(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u32 = 512;
    const SIZE: u32 = 256;

    fn slow() -> Duration {
        SLOW + Duration::from_millis(1)
    }

    #[test]
    fn a_slow_store_is_given_less_and_a_fast_one_more_within_bounds() {
        let mut pace = ReadPace::default();
        let mut most = Vec::new();
        for _ in 0..7 {
            pace.note_half(SIZE, slow(), WINDOW);
            most.push(pace.most(WINDOW));
        }
        assert_eq!(most, [256, 128, 64, 32, 16, 16, 16]);
        pace.note_half(SIZE, (SLOW + FAST) / 2, WINDOW);
        assert_eq!(pace.most(WINDOW), 16);
        for _ in 0..10 {
            pace.note_half(SIZE, Duration::ZERO, WINDOW);
        }
        assert_eq!(pace, ReadPace::default());
    }

    #[test]
    fn silence_takes_more_away_than_slowness() {
        let mut pace = ReadPace::default();
        pace.note_silence(SIZE, WINDOW);
        assert_eq!(pace.most(WINDOW), WINDOW / 4);
    }

    #[test]
    fn what_takes_just_as_long_as_it_may_changes_nothing() {
        let mut pace = ReadPace::default();
        pace.note_half(SIZE, SLOW, WINDOW);
        assert_eq!(pace.most(WINDOW), WINDOW);
        pace.note_half(SIZE, slow(), WINDOW);
        pace.note_half(SIZE, FAST, WINDOW);
        assert_eq!(pace.most(WINDOW), WINDOW / 2);
        // The smallest batch that counts.
        pace.note_half(TELLING, slow(), WINDOW);
        assert_eq!(pace.most(WINDOW), WINDOW / 4);
    }

    #[test]
    fn a_few_reads_say_nothing_about_the_store() {
        let mut pace = ReadPace::default();
        pace.note_half(TELLING - 1, slow(), WINDOW);
        pace.note_silence(TELLING - 1, WINDOW);
        assert_eq!(pace.most(WINDOW), WINDOW);
    }

    #[test]
    fn a_small_window_is_kept() {
        let mut pace = ReadPace::default();
        pace.note_silence(SIZE, 3);
        assert_eq!(pace.most(3), 3);
        pace.note_half(SIZE, Duration::ZERO, 3);
        assert_eq!(pace.most(3), 3);
    }
}
