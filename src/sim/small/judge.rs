use std::hash::{Hash, Hasher};

use super::raft::Group;
use super::sight::{Sight, Sights};
use super::state::Small;
use crate::error::ErrorKind;
use crate::machine::Outcome;
use crate::progress::{PhaseName, ReleaseState};

/// What is remembered of the past so that the rules can be judged: only what
/// happened in the cluster and on the way, never what the machine's books say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Judge {
    /// Whether a wait was sent in this attempt.
    pub(super) has_waited: bool,
    /// Stores whose lease has had a break since the first wait of the attempt.
    pub(super) has_break: Vec<bool>,
    /// Stores whose last renewal, of those whose answers have arrived, was
    /// served after a time without a break since the first wait.
    pub(super) is_sound: Vec<bool>,
    /// Whether something has arrived in this attempt that leaves doubt.
    pub(super) has_doubt: bool,
    /// Stores that another client has taken over, as far as has arrived.
    pub(super) is_superseded: Vec<bool>,
    /// Whether no lease had a break when the end of the hold was asked for.
    pub(super) was_kept: Option<bool>,
    /// What the last Finish of each store found.
    pub(super) finished: Vec<Option<bool>>,
    pub(super) attempt: u32,
    /// The first rule that was broken, and how.
    pub(super) broken: Option<(&'static str, String)>,
    /// What of note the last step brought about.
    pub(super) sights: Sights,
}

impl Hash for Judge {
    /// Leaves out the sights, which are about a step and not about a state.
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.has_waited.hash(to);
        self.has_break.hash(to);
        self.is_sound.hash(to);
        self.has_doubt.hash(to);
        self.is_superseded.hash(to);
        self.was_kept.hash(to);
        self.finished.hash(to);
        self.attempt.hash(to);
        self.broken.hash(to);
    }
}

impl Judge {
    pub(super) fn new(stores: u8) -> Self {
        let none = vec![false; usize::from(stores)];
        Self {
            has_waited: false,
            has_break: none.clone(),
            is_sound: none.clone(),
            has_doubt: false,
            is_superseded: none,
            was_kept: None,
            finished: vec![None; usize::from(stores)],
            attempt: 1,
            broken: None,
            sights: Sights::default(),
        }
    }

    pub(super) fn break_rule(&mut self, rule: &'static str, how: String) {
        self.broken.get_or_insert((rule, how));
    }

    /// A lease ended before its time, or by itself.
    pub(super) fn lease_ended(&mut self, store: usize) {
        if let Some(has_break) = self.has_break.get_mut(store) {
            *has_break |= self.has_waited;
        }
    }

    fn begin_attempt(&mut self, attempt: u32) {
        let sights = self.sights;
        let superseded = std::mem::take(&mut self.is_superseded);
        let broken = self.broken.take();
        *self = Self {
            attempt,
            is_superseded: superseded,
            broken,
            sights,
            ..Self::new(self.has_break.len() as u8)
        };
    }
}

/// The rules that are judged after each input of the machine.
impl Small {
    /// Looks at what an input has led to; `before` is the phase before it.
    pub(super) fn judge_input(&mut self, before: PhaseName) {
        let phase = self.machine.phase();
        if phase == PhaseName::Hold && before != PhaseName::Hold {
            self.judge_hold();
        }
        if phase == PhaseName::Hold {
            self.judge_own_clock();
            if self.judge.has_doubt {
                let how = "it holds although a lease was in doubt before".to_owned();
                self.judge.break_rule("doubt is sticky", how);
            }
        }
        if phase == PhaseName::Release && before != phase {
            self.judge_release();
        }
        if phase == PhaseName::Closed && before != phase {
            self.judge_end();
        }
        self.note_phase(before, phase);
        let attempt = self.machine.progress().attempt;
        if attempt != self.judge.attempt {
            self.judge.begin_attempt(attempt);
            self.groups.iter_mut().for_each(Group::begin_attempt);
        }
    }

    /// *No false hold*.
    fn judge_hold(&mut self) {
        const RULE: &str = "no false hold";
        if !self.judge.has_waited {
            self.judge
                .break_rule(RULE, "no wait was ever sent".to_owned());
        }
        if let Some(at) = self.judge.is_sound.iter().position(|sound| !sound) {
            let how = format!(
                "store {} was not suspended without a break from the first wait to the last renewal that was answered",
                at + 1
            );
            self.judge.break_rule(RULE, how);
        }
        if let Some(how) = self.unsettled() {
            self.judge.break_rule(RULE, how);
        }
    }

    /// Until the machine's own clock says so, no lease ends by itself.
    fn judge_own_clock(&mut self) {
        let Some(until) = self.machine.valid_until() else {
            return;
        };
        let trusted = until.saturating_duration_since(self.now());
        for (at, node) in self.nodes.iter().enumerate() {
            let has_break = self.judge.has_break.get(at).copied().unwrap_or(true);
            let left = node.lease.map(|lease| lease.left).unwrap_or_default();
            if !has_break && left < trusted {
                let how = format!(
                    "the hold counts for {trusted:?} more, the lease of store {} ends in {left:?}",
                    at + 1
                );
                self.judge.break_rule("own clock", how);
                return;
            }
        }
    }

    /// Whoever may hold a lease of ours gets a Finish, if that can be sent.
    fn judge_release(&mut self) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if node
                .present()
                .is_some_and(|stream| stream.is_leased && !stream.is_finished && !stream.has_ended)
            {
                let how = format!("store {} was leased and gets no Finish", at + 1);
                self.judge.break_rule("finish where due", how);
            }
        }
    }

    /// *Honest verdict*, and whoever may be left suspended is named.
    fn judge_end(&mut self) {
        const RULE: &str = "honest verdict";
        if self.machine.outcome() == Some(&Outcome::Finished) {
            if self.judge.was_kept != Some(true) {
                let how = "a lease had a break before the end of the hold was asked for";
                self.judge.break_rule(RULE, how.to_owned());
            }
            let unfinished = |finished: &Option<bool>| *finished != Some(true);
            if let Some(at) = self.judge.finished.iter().position(unfinished) {
                let how = format!("store {} served no Finish of a lease in force", at + 1);
                self.judge.break_rule(RULE, how);
            }
        }
        let now = self.now();
        let Some(report) = self.machine.finish_report() else {
            return;
        };
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(lease) = node.lease.filter(|lease| lease.is_ours) else {
                continue;
            };
            let named = report.stores.iter().any(|(id, state)| {
                let (ReleaseState::Unknown { until } | ReleaseState::LeftToOther { until }) = state
                else {
                    return false;
                };
                id.0 == at as u64 + 1 && *until >= now + lease.left
            });
            if !named {
                let how = format!("store {} is left suspended and not named", at + 1);
                self.judge.break_rule("name what is left", how);
                return;
            }
        }
    }

    fn note_phase(&mut self, before: PhaseName, phase: PhaseName) {
        if before == phase {
            return;
        }
        let sights = &mut self.judge.sights;
        match (before, phase) {
            (_, PhaseName::Hold) => {
                sights.see(Sight::Held);
                if self.judge.attempt > 1 {
                    sights.see(Sight::HeldLater);
                }
            }
            (PhaseName::Hold, PhaseName::Release) if self.judge.has_doubt => {
                sights.see(Sight::LostInHold);
            }
            (PhaseName::Release, PhaseName::Connect) => sights.see(Sight::Doubt),
            _ => {}
        }
        match self.machine.outcome() {
            Some(Outcome::Finished) => sights.see(Sight::FinishedWell),
            Some(Outcome::HoldLost(error)) => match error.kind() {
                ErrorKind::ReleaseUnconfirmed => {
                    sights.see(Sight::FinishedInDoubt);
                    if self.judge.finished.contains(&Some(false)) {
                        sights.see(Sight::FinishedLapsed);
                    }
                }
                ErrorKind::Superseded => sights.see(Sight::SupersededInHold),
                _ => {}
            },
            Some(Outcome::Failed(error)) if error.kind() == ErrorKind::Superseded => {
                sights.see(Sight::Superseded);
            }
            _ => {}
        }
    }
}
