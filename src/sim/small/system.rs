use super::action::Action;
use super::bounds::Bounds;
use super::sight::Sight;
use super::state::Small;
use crate::sim::explore::{Explorer, System};

/// All small clusters within bounds, each with a machine that prepares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmallCluster {
    bounds: Bounds,
}

impl SmallCluster {
    /// Returns the system within `bounds`.
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds }
    }

    /// Returns an explorer with the properties that a run has to have, and with
    /// all that has to be seen somewhere, as far as the bounds let it happen.
    pub fn explorer(self) -> Explorer<Self> {
        let mut explorer = Explorer::new(self)
            .always("the rules", |small: &Small| match small.broken() {
                None => Ok(()),
                Some((rule, how)) => Err(format!("{rule}: {how}")),
            })
            .always("the machine's invariants", |small| {
                small.machine().check_invariants()
            })
            .always("nothing waits for ever", |small| {
                match small.machine().outcome().is_some()
                    == small.machine().poll_timeout().is_none()
                {
                    true => Ok(()),
                    false => Err("no deadline, and no end".to_owned()),
                }
            });
        for (sight, words) in Sight::ALL {
            explorer = explorer.sometimes(words, move |small| small.sights().has(sight));
        }
        explorer
    }
}

impl System for SmallCluster {
    type State = Small;
    type Action = Action;

    fn start(&self) -> Vec<Small> {
        Small::start(&self.bounds).into_iter().collect()
    }

    fn actions(&self, state: &Small) -> Vec<Action> {
        state.possible(&self.bounds)
    }

    fn step(&self, state: &Small, action: &Action) -> Option<Small> {
        let mut next = state.clone();
        next.judge.sights = super::Sights::default();
        next.act(*action);
        if next.phase() == crate::progress::PhaseName::Hold && next.faults() > 0 {
            next.judge.sights.see(Sight::HeldDespiteFaults);
        }
        next.normalize(&self.bounds);
        Some(next)
    }

    fn describe(&self, state: &Small, action: &Action) -> String {
        state.describe(*action)
    }
}
