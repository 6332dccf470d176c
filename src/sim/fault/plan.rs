use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::timing::log_uniform;
use super::{FaultKind, FaultLevel, Timing};
use crate::progress::PhaseName;

/// What goes wrong in a run, drawn from a level and a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// The level it was drawn for.
    pub level: FaultLevel,
    /// The seed it was drawn from; also decides when and where each fault
    /// strikes.
    pub seed: u64,
    /// How fast the cluster is.
    pub timing: Timing,
    /// How often each kind of fault strikes.
    pub strikes: BTreeMap<FaultKind, u32>,
    /// How often each kind of fault strikes in a certain phase, beyond that:
    /// once the phase is entered, if it ever is.
    pub aims: BTreeMap<(FaultKind, PhaseName), u32>,
    /// How long the cluster has been running when a client comes.
    pub warm_up: Duration,
    /// Faults stop this long after the warm-up, and what they broke is mended
    /// (save a store that is gone).
    pub stop_after: Duration,
    /// How long a fault lasts, at the most.
    pub longest: Duration,
}

/// The kinds that a busy but healthy cluster has, each with the chance (in
/// percent) that a run has it and the most strikes.
const LIGHT: [(FaultKind, u32, u32); 13] = [
    (FaultKind::Write, 90, 60),
    (FaultKind::Split, 60, 4),
    (FaultKind::Merge, 40, 2),
    (FaultKind::ConfChange, 40, 3),
    (FaultKind::Joint, 10, 1),
    (FaultKind::Transfer, 50, 5),
    (FaultKind::Election, 30, 2),
    (FaultKind::PdLag, 40, 2),
    (FaultKind::PdLeaderless, 20, 1),
    (FaultKind::PdLeaderChange, 10, 1),
    (FaultKind::SlowApply, 40, 2),
    (FaultKind::Busy, 30, 2),
    (FaultKind::SlowAnswer, 20, 2),
];

const HEAVY: [(FaultKind, u32, u32); 29] = [
    (FaultKind::Write, 80, 100),
    (FaultKind::Split, 50, 8),
    (FaultKind::Merge, 50, 5),
    (FaultKind::SlowMerge, 30, 2),
    (FaultKind::ConfChange, 50, 6),
    (FaultKind::Joint, 30, 2),
    (FaultKind::Transfer, 40, 6),
    (FaultKind::Election, 50, 6),
    (FaultKind::CutStore, 35, 2),
    (FaultKind::CutLink, 30, 3),
    (FaultKind::LostQuorum, 35, 3),
    (FaultKind::HeldAppends, 40, 4),
    (FaultKind::PdLag, 40, 3),
    (FaultKind::PdLeaderChange, 20, 2),
    (FaultKind::PdRestart, 15, 1),
    (FaultKind::PdLeaderless, 25, 2),
    (FaultKind::PdGap, 25, 2),
    (FaultKind::SlowApply, 40, 4),
    (FaultKind::StuckRaft, 20, 2),
    (FaultKind::RegionError, 30, 3),
    (FaultKind::Busy, 30, 3),
    (FaultKind::SlowAnswer, 30, 3),
    (FaultKind::StoreRestart, 20, 2),
    (FaultKind::StoreGone, 3, 1),
    (FaultKind::StreamCut, 20, 2),
    (FaultKind::HalfOpen, 15, 1),
    (FaultKind::Rival, 12, 1),
    (FaultKind::NewStore, 15, 1),
    (FaultKind::ClientPause, 8, 1),
];

/// More kinds of the heavy level, each drawn from a stream of randomness of its
/// own, so that one more changes nothing for the others.
const HEAVY_MORE: [(FaultKind, u32, u32); 13] = [
    (FaultKind::LeaderReturns, 20, 3),
    (FaultKind::PeerDelay, 15, 2),
    (FaultKind::ClientDelay, 15, 2),
    (FaultKind::RivalAgain, 3, 1),
    (FaultKind::LateFinish, 5, 2),
    (FaultKind::StaleFollower, 25, 3),
    (FaultKind::LeaderRemoved, 15, 2),
    (FaultKind::OrphanWait, 20, 2),
    (FaultKind::TwoClaims, 15, 2),
    (FaultKind::StoreCrash, 6, 1),
    (FaultKind::FinishLate, 5, 1),
    (FaultKind::FinishWrong, 3, 1),
    (FaultKind::FinishLost, 3, 1),
];

/// The phases at which faults can be aimed.
const PHASES: [PhaseName; 6] = [
    PhaseName::Connect,
    PhaseName::Suspend,
    PhaseName::WaitApply,
    PhaseName::Verify,
    PhaseName::Hold,
    PhaseName::Release,
];

impl FaultPlan {
    /// Returns the plan in which nothing goes wrong.
    pub fn none() -> Self {
        Self::derive(FaultLevel::None, 0)
    }

    /// Draws a plan.
    pub fn derive(level: FaultLevel, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x00fa_017f_a017);
        let timing = Timing::derive(level, &mut rng);
        let mut strikes = BTreeMap::new();
        let table: &[(FaultKind, u32, u32)] = match level {
            FaultLevel::None => &[],
            FaultLevel::Light => &LIGHT,
            FaultLevel::Heavy => &HEAVY,
        };
        for &(kind, percent, most) in table {
            // Both are drawn each time, so that a change of one kind's chance
            // leaves the others as they are.
            let (chance, count) = (rng.random_range(0..100), rng.random_range(1..=most));
            if chance < percent {
                strikes.insert(kind, count);
            }
        }
        let mut aims = BTreeMap::new();
        if level == FaultLevel::Heavy {
            for &(kind, percent, most) in &HEAVY_MORE {
                let mut rng = stream_of(seed, kind.as_str());
                if rng.random_range(0..100) < percent {
                    strikes.insert(kind, rng.random_range(1..=most));
                }
            }
            aims = derive_aims(seed);
        }
        let (shortest, longest) = match level {
            FaultLevel::None => (1, 1),
            FaultLevel::Light => (2_000, 20_000),
            FaultLevel::Heavy => (5_000, 90_000),
        };
        let stop_after = Duration::from_millis(log_uniform(&mut rng, shortest, longest));
        let warm_up = match level {
            FaultLevel::None => 0,
            FaultLevel::Light | FaultLevel::Heavy => log_uniform(&mut rng, 10, 30_000),
        };
        Self {
            level,
            seed,
            timing,
            strikes,
            aims,
            warm_up: Duration::from_millis(warm_up),
            stop_after,
            longest: match level {
                FaultLevel::None | FaultLevel::Light => Duration::from_secs(2),
                FaultLevel::Heavy => Duration::from_secs(40),
            },
        }
    }

    /// Leaves only the kinds that are named.
    #[must_use]
    pub fn only(mut self, kinds: &[FaultKind]) -> Self {
        self.strikes.retain(|kind, _| kinds.contains(kind));
        self.aims.retain(|(kind, _), _| kinds.contains(kind));
        self
    }

    /// Leaves one kind out.
    #[must_use]
    pub fn without(mut self, kind: FaultKind) -> Self {
        self.strikes.remove(&kind);
        self.aims.retain(|&(of, _), _| of != kind);
        self
    }

    /// Lets one kind strike `count` times.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, count: u32) -> Self {
        self.strikes.insert(kind, count);
        self
    }

    /// Lets one kind strike `count` times in a certain phase, shortly after the
    /// run enters it.
    ///
    /// It strikes while the phase lasts and faults have not stopped, or waits
    /// until the phase is entered once more. Nothing strikes in a phase in which
    /// it [cannot](FaultKind::can_strike_in).
    #[must_use]
    pub fn aimed(mut self, kind: FaultKind, phase: PhaseName, count: u32) -> Self {
        self.aims.insert((kind, phase), count);
        self
    }
}

/// Draws up to three faults that are aimed at a phase.
fn derive_aims(seed: u64) -> BTreeMap<(FaultKind, PhaseName), u32> {
    let mut rng = stream_of(seed, "aims");
    let mut aims = BTreeMap::new();
    for _ in 0..rng.random_range(0..=3) {
        let kind = FaultKind::ALL[rng.random_range(0..FaultKind::ALL.len())];
        let phase = PHASES[rng.random_range(0..PHASES.len())];
        if kind.can_strike_in(phase) {
            *aims.entry((kind, phase)).or_default() += 1;
        }
    }
    aims
}

/// Returns the stream of randomness that a seed has for one purpose.
fn stream_of(seed: u64, purpose: &str) -> ChaCha8Rng {
    // FNV-1a.
    let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    ChaCha8Rng::seed_from_u64(seed ^ hash)
}

impl fmt::Display for FaultPlan {
    /// All derived parameters in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults={} seed={}", self.level, self.seed)?;
        for (kind, count) in &self.strikes {
            write!(f, " {kind}={count}")?;
        }
        for ((kind, phase), count) in &self.aims {
            write!(f, " {kind}@{phase}={count}")?;
        }
        write!(
            f,
            " warm_up={:?} stop_after={:?} longest={:?} {:?}",
            self.warm_up, self.stop_after, self.longest, self.timing
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_plan() {
        for level in [FaultLevel::None, FaultLevel::Light, FaultLevel::Heavy] {
            assert_eq!(FaultPlan::derive(level, 7), FaultPlan::derive(level, 7));
        }
        let (one, other) = (
            FaultPlan::derive(FaultLevel::Heavy, 1),
            FaultPlan::derive(FaultLevel::Heavy, 2),
        );
        assert_ne!(one.strikes, other.strikes);
    }

    #[test]
    fn heavy_has_every_kind_and_light_only_some() {
        let kinds = |level| {
            let plans = (0..600).map(|seed| FaultPlan::derive(level, seed));
            let mut kinds: Vec<FaultKind> = plans.flat_map(|p| p.strikes.into_keys()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        };
        assert_eq!(kinds(FaultLevel::Heavy).len(), FaultKind::ALL.len());
        assert_eq!(kinds(FaultLevel::Light).len(), LIGHT.len());
        assert!(kinds(FaultLevel::None).is_empty());
    }

    #[test]
    fn single_faults_are_switched_by_name() {
        let plan = FaultPlan::derive(FaultLevel::Heavy, 3)
            .with(FaultKind::Split, 9)
            .with(FaultKind::Rival, 1);
        let only = plan.clone().only(&["split".parse().unwrap()]);
        assert_eq!(only.strikes, BTreeMap::from([(FaultKind::Split, 9)]));
        assert!(
            !plan
                .without(FaultKind::Rival)
                .strikes
                .contains_key(&FaultKind::Rival)
        );
        for kind in FaultKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        assert!("nonsense".parse::<FaultKind>().is_err());
    }

    #[test]
    fn what_is_left_out_is_not_aimed_either() {
        let plan = FaultPlan::none()
            .aimed(FaultKind::Rival, PhaseName::Hold, 2)
            .aimed(FaultKind::Busy, PhaseName::Hold, 1);
        let without = plan.clone().without(FaultKind::Rival);
        assert_eq!(
            without.aims,
            BTreeMap::from([((FaultKind::Busy, PhaseName::Hold), 1)])
        );
        assert_eq!(plan.only(&[FaultKind::Rival]).aims.len(), 1);
    }

    #[test]
    fn heavy_plans_aim_every_kind_at_every_phase_in_which_it_can_strike() {
        let mut aimed: Vec<_> = (0..20_000)
            .flat_map(|seed| derive_aims(seed).into_keys())
            .collect();
        aimed.sort_unstable();
        aimed.dedup();
        let can = FaultKind::ALL
            .iter()
            .flat_map(|&kind| PHASES.iter().map(move |&phase| (kind, phase)))
            .filter(|(kind, phase)| kind.can_strike_in(*phase));
        assert_eq!(aimed, can.collect::<Vec<_>>());
    }

    #[test]
    fn a_plan_tells_all_of_itself() {
        let plan =
            FaultPlan::none()
                .with(FaultKind::Split, 3)
                .aimed(FaultKind::Rival, PhaseName::Hold, 2);
        let text = plan.to_string();
        for part in [
            "faults=none",
            "split=3",
            "rival@hold=2",
            "stop_after",
            "election_timeout",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
