use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::timing::log_uniform;
use super::{FaultKind, FaultLevel, Timing};

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
        self
    }

    /// Leaves one kind out.
    #[must_use]
    pub fn without(mut self, kind: FaultKind) -> Self {
        self.strikes.remove(&kind);
        self
    }

    /// Lets one kind strike `count` times.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, count: u32) -> Self {
        self.strikes.insert(kind, count);
        self
    }
}

impl fmt::Display for FaultPlan {
    /// All derived parameters in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults={} seed={}", self.level, self.seed)?;
        for (kind, count) in &self.strikes {
            write!(f, " {kind}={count}")?;
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
            let plans = (0..400).map(|seed| FaultPlan::derive(level, seed));
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
    fn a_plan_tells_all_of_itself() {
        let plan = FaultPlan::none().with(FaultKind::Split, 3);
        let text = plan.to_string();
        for part in ["faults=none", "split=3", "stop_after", "election_timeout"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
