use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::FaultLevel;

/// How fast a model cluster is. Drawn from a seed, or set by hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// One way between a client and a store or PD, at the least.
    pub client_delay: Duration,
    /// One way between two stores, at the least.
    pub peer_delay: Duration,
    /// Each delay grows by a random part of up to this many percent.
    pub jitter_percent: u32,
    /// From 'committed' to 'applied'.
    pub apply_delay: Duration,
    /// A store's work for one answer.
    pub answer_cost: Duration,
    /// The shortest time without a leader's word after which a peer asks for
    /// votes; the longest is twice that.
    pub election_timeout: Duration,
    /// How long it takes at least until the peers of an idle region notice that
    /// their leader is gone; four times that at the most.
    pub idle_notice: Duration,
    /// How long after a change PD hears of it, at the most.
    pub pd_lag: Duration,
    /// How often a region between the two steps of a merge looks whether it can
    /// take the second.
    pub merge_check: Duration,
    /// How often each leader tells PD of itself.
    pub pd_refresh: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            client_delay: Duration::from_micros(300),
            peer_delay: Duration::from_micros(300),
            jitter_percent: 50,
            apply_delay: Duration::from_micros(500),
            answer_cost: Duration::from_micros(30),
            election_timeout: Duration::from_millis(500),
            idle_notice: Duration::from_secs(2),
            pd_lag: Duration::from_millis(50),
            merge_check: Duration::from_millis(10),
            pd_refresh: Duration::from_secs(60),
        }
    }
}

impl Timing {
    pub(super) fn derive(level: FaultLevel, rng: &mut ChaCha8Rng) -> Self {
        let mut micros = |low: u64, high: u64| Duration::from_micros(log_uniform(rng, low, high));
        match level {
            FaultLevel::None => Self::default(),
            FaultLevel::Light => Self {
                client_delay: micros(100, 2_000),
                peer_delay: micros(100, 2_000),
                jitter_percent: 100,
                apply_delay: micros(200, 20_000),
                answer_cost: micros(20, 100),
                election_timeout: micros(300_000, 2_000_000),
                idle_notice: micros(500_000, 5_000_000),
                pd_lag: micros(10_000, 2_000_000),
                merge_check: micros(5_000, 500_000),
                pd_refresh: micros(10_000_000, 60_000_000),
            },
            FaultLevel::Heavy => Self {
                client_delay: micros(100, 50_000),
                peer_delay: micros(100, 50_000),
                jitter_percent: 400,
                apply_delay: micros(200, 300_000),
                answer_cost: micros(20, 2_000),
                election_timeout: micros(300_000, 10_000_000),
                idle_notice: micros(500_000, 30_000_000),
                pd_lag: micros(10_000, 20_000_000),
                merge_check: micros(5_000, 5_000_000),
                pd_refresh: micros(10_000_000, 60_000_000),
            },
        }
    }
}

/// Draws a number whose logarithm is spread evenly, since small and large ones
/// matter alike.
pub(in crate::sim) fn log_uniform(rng: &mut ChaCha8Rng, low: u64, high: u64) -> u64 {
    let (low, high) = (low.max(1), high.max(1));
    if low >= high {
        return low;
    }
    let octaves = (high / low).ilog2() + 1;
    let floor = low << rng.random_range(0..octaves).min(62);
    let top = floor.saturating_mul(2).min(high);
    if floor >= top {
        return high;
    }
    rng.random_range(floor..=top)
}
