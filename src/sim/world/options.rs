use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Setup, Sizes};
use crate::machine::Proof;
use crate::progress::PhaseName;
use crate::sim::fault::{FaultKind, FaultLevel, FaultPlan, log_uniform};

/// The most strikes of one kind that one run can be given.
const COUNT_MAX: u32 = 10_000;

/// What to simulate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The seeds, one run each.
    pub seeds: RangeInclusive<u64>,
    /// How much goes wrong.
    pub level: FaultLevel,
    /// How large the clusters are.
    pub sizes: Sizes,
    /// The only kinds of the level's faults that strike; all when empty.
    pub only: Vec<FaultKind>,
    /// The kinds of the level's faults that do not strike.
    pub without: Vec<FaultKind>,
    /// Faults that strike in every run, whatever the level.
    pub faults: Vec<FaultSpec>,
    /// What a hold rests on; as drawn when `None`: nearly always a read.
    pub proof: Option<Proof>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seeds: 1..=200,
            level: FaultLevel::Heavy,
            sizes: Sizes::default(),
            only: Vec::new(),
            without: Vec::new(),
            faults: Vec::new(),
            proof: None,
        }
    }
}

/// A fault by name, how often it strikes, and in which phase: `split`,
/// `split=3`, `stream_cut=2@hold` or `rival@release`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FaultSpec {
    /// The kind.
    pub kind: FaultKind,
    /// How often it strikes in a run.
    pub count: u32,
    /// The phase at which it is aimed; `None` for at any time.
    pub phase: Option<PhaseName>,
}

/// The phases at which a fault can be aimed.
const PHASES: [PhaseName; 6] = [
    PhaseName::Connect,
    PhaseName::Suspend,
    PhaseName::WaitApply,
    PhaseName::Verify,
    PhaseName::Hold,
    PhaseName::Release,
];

impl FromStr for FaultSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, phase) = match text.split_once('@') {
            None => (text, None),
            Some((text, phase)) => (text, Some(parse_phase(phase)?)),
        };
        let (name, count) = match text.split_once('=') {
            None => (text, 1),
            Some((name, count)) => {
                let number = count.parse().ok();
                let number = number.filter(|number| (1..=COUNT_MAX).contains(number));
                let wrong = || format!("`{count}` is no count from 1 to {COUNT_MAX}");
                (name, number.ok_or_else(wrong)?)
            }
        };
        let kind: FaultKind = name.parse()?;
        if let Some(phase) = phase
            && !kind.can_strike_in(phase)
        {
            return Err(format!("`{kind}` cannot strike in {phase}"));
        }
        Ok(Self { kind, count, phase })
    }
}

fn parse_phase(name: &str) -> Result<PhaseName, String> {
    let found = PHASES.into_iter().find(|phase| phase.as_str() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = PHASES.iter().map(|phase| phase.as_str()).collect();
        format!(
            "there is no phase `{name}`; faults can be aimed at {}",
            names.join(", ")
        )
    })
}

impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, self.count)?;
        match self.phase {
            Some(phase) => write!(f, "@{phase}"),
            None => Ok(()),
        }
    }
}

impl Options {
    /// Draws the run of one seed.
    pub fn setup(&self, seed: u64) -> Setup {
        let mut setup = Setup::derive(seed, self.level, &self.sizes);
        if !self.only.is_empty() {
            setup.plan = setup.plan.only(&self.only);
        }
        for &kind in &self.without {
            setup.plan = setup.plan.without(kind);
        }
        if self.level == FaultLevel::None && !self.faults.is_empty() {
            // A cluster at rest leaves no time for anything to go wrong in.
            let light = FaultPlan::derive(FaultLevel::Light, seed);
            setup.plan.warm_up = light.warm_up;
            setup.plan.stop_after = light.stop_after;
            setup.plan.longest = light.longest;
        }
        for spec in &self.faults {
            setup.plan = match spec.phase {
                Some(phase) => setup.plan.aimed(spec.kind, phase, spec.count),
                None => setup.plan.with(spec.kind, spec.count),
            };
        }
        fit_pauses(&mut setup);
        match self.proof {
            Some(proof) => setup.config.proof = proof,
            // What claims would be deceived by was left out, and is back.
            None if self.faults.iter().any(|spec| spec.kind.deceives_claims()) => {
                setup.config.proof = Proof::Read;
            }
            None => {}
        }
        setup.replay = self.replay(seed);
        setup
    }

    /// Returns the command that does the run of one seed again.
    pub fn replay(&self, seed: u64) -> String {
        format!("{} --seeds {seed}{self}", Self::PROGRAM)
    }

    /// Returns the command that tells the run of one seed as a story.
    pub fn story(&self, seed: u64) -> String {
        format!("{} --trace {seed}{self}", Self::PROGRAM)
    }

    const PROGRAM: &str = "snapshot-prepare simulate";
}

impl fmt::Display for Options {
    /// The arguments of `simulate` that say the same, save the seeds, each with
    /// a space in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " --faults {}", self.level)?;
        let default = Sizes::default();
        for (name, range, usual) in [
            ("stores", &self.sizes.stores, default.stores),
            ("regions", &self.sizes.regions, default.regions),
        ] {
            if *range != usual {
                write!(f, " --{name} {}..{}", range.start(), range.end())?;
            }
        }
        for (name, kinds) in [("only", &self.only), ("without", &self.without)] {
            if !kinds.is_empty() {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                write!(f, " --{name} {}", names.join(","))?;
            }
        }
        for spec in &self.faults {
            write!(f, " --fault {spec}")?;
        }
        match self.proof {
            Some(Proof::Claims) => f.write_str(" --proof claims"),
            Some(_) => f.write_str(" --proof read"),
            None => Ok(()),
        }
    }
}

/// The client's pauses are part of the setup, not of what the cluster does:
/// gives it as many as the plan has.
fn fit_pauses(setup: &mut Setup) {
    let wanted = setup.plan.strikes.get(&FaultKind::ClientPause);
    let wanted = wanted.map_or(0, |&count| count as usize);
    setup.pauses.truncate(wanted);
    let mut rng = ChaCha8Rng::seed_from_u64(setup.seed ^ 0x7061_7573_6573);
    let longest = setup.plan.longest.as_millis().max(1_000) as u64;
    while setup.pauses.len() < wanted {
        let at = Duration::from_millis(log_uniform(&mut rng, 10, 60_000));
        let lasting = Duration::from_millis(rng.random_range(1..=longest));
        setup.pauses.push((at, lasting));
    }
    setup.pauses.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_by_name_has_a_count() {
        let parsed = |text: &str| text.parse::<FaultSpec>();
        let split = |count| FaultSpec {
            kind: FaultKind::Split,
            count,
            phase: None,
        };
        assert_eq!(parsed("split"), Ok(split(1)));
        assert_eq!(parsed("split=12"), Ok(split(12)));
        for wrong in ["split=0", "split=x", "split=", "split=10001"] {
            let message = parsed(wrong).expect_err(wrong);
            assert!(message.contains("no count"), "{message}");
        }
        assert!(parsed("splt").is_err());
        assert_eq!(
            parsed("rival@hold").expect("parses").to_string(),
            "rival=1@hold"
        );
        assert_eq!(
            parsed("stream_cut=2@hold").expect("parses").phase,
            Some(PhaseName::Hold)
        );
        for (wrong, part) in [
            ("rival@dinner", "connect, suspend, wait_apply"),
            ("split@hold", "cannot strike in hold"),
        ] {
            let message = parsed(wrong).expect_err(wrong);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn only_and_without_leave_faults_out_also_pauses() {
        let mut options = Options {
            only: vec![FaultKind::ClientPause, FaultKind::Split],
            ..Options::default()
        };
        let paused = (0..200).map(|seed| options.setup(seed).pauses.len());
        assert!(paused.sum::<usize>() > 0);
        options.without = vec![FaultKind::ClientPause];
        for seed in 0..200 {
            let setup = options.setup(seed);
            assert!(setup.pauses.is_empty());
            assert!(setup.plan.strikes.keys().all(|&k| k == FaultKind::Split));
        }
    }

    #[test]
    fn faults_by_name_strike_at_any_level() {
        let options = Options {
            level: FaultLevel::None,
            faults: vec![
                "merge=3".parse().unwrap(),
                "client_pause=2".parse().unwrap(),
            ],
            ..Options::default()
        };
        let setup = options.setup(7);
        assert_eq!(setup.plan.strikes.get(&FaultKind::Merge), Some(&3));
        assert_eq!(setup.pauses.len(), 2);
        assert!(setup.plan.stop_after > Duration::from_secs(1));
    }

    #[test]
    fn the_replay_says_all_that_is_not_usual() {
        let usual = Options::default();
        assert_eq!(
            usual.replay(7),
            "snapshot-prepare simulate --seeds 7 --faults heavy"
        );
        let other = Options {
            level: FaultLevel::Light,
            sizes: Sizes {
                stores: 3..=3,
                regions: 1..=9,
            },
            only: vec![FaultKind::Split, FaultKind::Merge],
            without: vec![FaultKind::Rival],
            faults: vec!["pd_gap=2@verify".parse().unwrap()],
            proof: Some(Proof::Claims),
            ..Options::default()
        };
        assert_eq!(
            other.story(1),
            "snapshot-prepare simulate --trace 1 --faults light --stores 3..3 --regions 1..9 \
             --only split,merge --without rival --fault pd_gap=2@verify --proof claims"
        );
    }
}
