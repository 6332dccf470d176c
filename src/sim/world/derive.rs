use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Options;
use crate::machine::{Config, ForeignLease, Proof};
use crate::region::{Store, StoreId, StoreState};
use crate::sim::fault::{FaultKind, FaultLevel, FaultPlan, log_uniform};
use crate::sim::layout::Layout;

/// How large the clusters are: a seed draws a size from each range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Stores.
    pub stores: RangeInclusive<u32>,
    /// Regions.
    pub regions: RangeInclusive<u32>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            stores: 2..=8,
            regions: 1..=200,
        }
    }
}

/// Everything that one run is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// Stores.
    pub stores: u32,
    /// Regions.
    pub regions: u32,
    /// Voters of each region.
    pub replicas: u32,
    /// What goes wrong.
    pub plan: FaultPlan,
    /// How the machine behaves.
    pub config: Config,
    /// How long the hold goes on until its end is asked for.
    pub hold: Duration,
    /// When the run is cancelled, counted from its start.
    pub cancel_after: Option<Duration>,
    /// When the client's process is paused, and for how long, counted from its
    /// start. The plan can have more of them, aimed at a phase.
    pub pauses: Vec<(Duration, Duration)>,
    /// Whether PD also lists a tombstone and a TiFlash store.
    pub bystanders: bool,
    /// The command that draws the same again.
    pub replay: String,
}

impl Setup {
    /// Draws a run from a seed.
    pub fn derive(seed: u64, level: FaultLevel, sizes: &Sizes) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x0077_6f72_6c64);
        let stores = draw(&mut rng, &sizes.stores);
        let regions = draw(&mut rng, &sizes.regions);
        let replicas = [1, 3, 3, 3, 3, 3, 3, 5][rng.random_range(0..8)];
        let mut plan = FaultPlan::derive(level, seed);
        let mut config = config(seed, level, &mut rng);
        let longest_hold = match level {
            FaultLevel::None => 5_000,
            FaultLevel::Light => 20_000,
            FaultLevel::Heavy => 200_000,
        };
        let hold = Duration::from_millis(log_uniform(&mut rng, 10, longest_hold));
        let cancels = rng.random_ratio(1, 25);
        let cancel_after = Duration::from_millis(log_uniform(&mut rng, 1, 60_000));
        let mut pauses = Vec::new();
        for _ in 0..plan
            .strikes
            .get(&FaultKind::ClientPause)
            .copied()
            .unwrap_or(0)
        {
            let at = Duration::from_millis(log_uniform(&mut rng, 10, 60_000));
            let lasting = Duration::from_millis(log_uniform(&mut rng, 10, 300_000));
            pauses.push((at, lasting));
        }
        pauses.sort_unstable();
        let bystanders = level == FaultLevel::Heavy && choose(seed, &mut config, &mut plan);
        Self {
            seed,
            stores,
            regions,
            replicas,
            plan,
            config,
            hold,
            cancel_after: (level == FaultLevel::Heavy && cancels).then_some(cancel_after),
            pauses,
            bystanders,
            replay: Options {
                level,
                sizes: sizes.clone(),
                ..Options::default()
            }
            .replay(seed),
        }
    }

    /// Makes up the cluster.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::generate(self.stores, self.regions, self.replicas, self.seed);
        if self.bystanders {
            let next = u64::from(self.stores) + 1;
            let store = |id: u64| Store {
                id: StoreId(id),
                address: format!("bystander-{id}.invalid:20160"),
                ..Store::default()
            };
            layout.stores.push(Store {
                state: StoreState::Tombstone,
                ..store(next)
            });
            layout.stores.push(Store {
                labels: [("engine".to_owned(), "tiflash".to_owned())].into(),
                ..store(next + 1)
            });
        }
        layout
    }
}

/// Draws what is decided in few runs only, from a stream of randomness of its
/// own. Returns whether there are bystanders.
fn choose(seed: u64, config: &mut Config, plan: &mut FaultPlan) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x6368_6f6f_7365);
    let (refuses, claims) = (rng.random_ratio(1, 8), rng.random_ratio(1, 10));
    if refuses {
        config.foreign_lease = ForeignLease::Refuse;
    }
    if claims {
        config.proof = Proof::Claims;
        // Such a proof rests on the assumption that no leader is cut off.
        for &kind in FaultKind::ALL {
            if kind.deceives_claims() {
                *plan = plan.clone().without(kind);
            }
        }
        // What it does rest on is that everything is looked at once more.
        for kind in [FaultKind::Merge, FaultKind::HeldAppends] {
            let count = rng.random_range(2..=12);
            *plan = plan.clone().with(kind, count);
        }
    }
    rng.random_ratio(1, 4)
}

fn draw(rng: &mut ChaCha8Rng, range: &RangeInclusive<u32>) -> u32 {
    let drawn = log_uniform(rng, u64::from(*range.start()), u64::from(*range.end()));
    u32::try_from(drawn).unwrap_or(u32::MAX)
}

fn config(seed: u64, level: FaultLevel, rng: &mut ChaCha8Rng) -> Config {
    let mut config = Config {
        seed,
        ..Config::default()
    };
    let leases: &[u64] = match level {
        FaultLevel::None | FaultLevel::Light => &[30, 60, 120, 120],
        FaultLevel::Heavy => &[5, 7, 10, 30, 60, 120],
    };
    config.lease = Duration::from_secs(leases[rng.random_range(0..leases.len())]);
    let (window, page) = (log_uniform(rng, 1, 512), log_uniform(rng, 1, 4096));
    if level == FaultLevel::Heavy {
        config.window = u32::try_from(window).unwrap_or(512);
        config.page_size = u32::try_from(page).unwrap_or(4096);
        config.ask_timeout = Duration::from_secs(rng.random_range(2..=30));
        config.read_timeout = Duration::from_secs(rng.random_range(1..=10));
    }
    config
}

impl fmt::Display for Setup {
    /// All derived parameters in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stores={} regions={} replicas={} lease={:?} window={} page={} ask={:?} read={:?} hold={:?} cancel={:?} pauses={:?} foreign={:?} proof={} bystanders={} {}",
            self.stores,
            self.regions,
            self.replicas,
            self.config.lease,
            self.config.window,
            self.config.page_size,
            self.config.ask_timeout,
            self.config.read_timeout,
            self.hold,
            self.cancel_after,
            self.pauses,
            self.config.foreign_lease,
            self.config.proof.as_str(),
            self.bystanders,
            self.plan
        )
    }
}
