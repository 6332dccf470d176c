use std::collections::BTreeSet;
use std::fmt;

use super::hash::fingerprint;
use super::report::{Report, Sight, Step, Trail};
use super::system::System;

/// How far to explore at most; the system has bounds of its own besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most states.
    pub states: u64,
    /// The most steps from a start.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states: 100_000_000,
            depth: u32::MAX,
        }
    }
}

type Always<S> = Box<dyn Fn(&S) -> Result<(), String>>;
type Sometimes<S> = Box<dyn Fn(&S) -> bool>;

/// Visits every state of a [`System`], breadth first, so that a violation is
/// told by one of the shortest ways there.
///
/// Of each state visited only a hash is kept, and how it was reached; the states
/// themselves only while their followers are made.
pub struct Explorer<S: System> {
    system: S,
    always: Vec<(String, Always<S::State>)>,
    sometimes: Vec<(String, Sometimes<S::State>)>,
}

impl<S: System> fmt::Debug for Explorer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explorer").finish_non_exhaustive()
    }
}

/// How a state was reached: from which one, and by which of its actions.
#[derive(Clone, Copy)]
struct Origin {
    from: u32,
    action: u16,
}

/// What is known so far.
struct Visit<State> {
    seen: BTreeSet<u128>,
    origins: Vec<Origin>,
    frontier: Vec<(State, u32)>,
    report: Report,
}

/// The origin of a start.
const START: u32 = u32::MAX;

impl<S: System> Explorer<S> {
    /// Returns an explorer of `system` without properties.
    pub fn new(system: S) -> Self {
        Self {
            system,
            always: Vec::new(),
            sometimes: Vec::new(),
        }
    }

    /// Adds a property that has to hold in every state.
    #[must_use]
    pub fn always(
        mut self,
        name: impl Into<String>,
        holds: impl Fn(&S::State) -> Result<(), String> + 'static,
    ) -> Self {
        self.always.push((name.into(), Box::new(holds)));
        self
    }

    /// Adds something that has to be seen in some state.
    #[must_use]
    pub fn sometimes(
        mut self,
        name: impl Into<String>,
        is_seen: impl Fn(&S::State) -> bool + 'static,
    ) -> Self {
        self.sometimes.push((name.into(), Box::new(is_seen)));
        self
    }

    /// Returns the system.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// Explores until everything is visited, a property is violated or a limit
    /// is reached.
    pub fn run(&self, limits: &Limits) -> Report {
        self.run_with(limits, |_| {})
    }

    /// The same, and calls `progress` after each depth with what is known by
    /// then.
    pub fn run_with(&self, limits: &Limits, mut progress: impl FnMut(&Report)) -> Report {
        let sights = self.sometimes.iter().map(|(name, _)| Sight {
            name: name.clone(),
            times: 0,
            path: Vec::new(),
        });
        let mut visit = Visit {
            seen: BTreeSet::new(),
            origins: Vec::new(),
            frontier: Vec::new(),
            report: Report {
                states: 0,
                steps: 0,
                depth: 0,
                is_complete: false,
                sights: sights.collect(),
                violation: None,
            },
        };
        for (index, state) in self.system.start().into_iter().enumerate() {
            let origin = Origin {
                from: START,
                action: index as u16,
            };
            self.reach(&mut visit, state, origin);
        }
        while !visit.frontier.is_empty() && visit.report.violation.is_none() {
            progress(&visit.report);
            if visit.report.depth >= limits.depth || visit.report.states >= limits.states {
                return visit.report;
            }
            visit.report.depth += 1;
            self.expand_all(&mut visit, limits);
        }
        visit.report.is_complete = visit.report.violation.is_none() && visit.frontier.is_empty();
        visit.report
    }

    fn expand_all(&self, visit: &mut Visit<S::State>, limits: &Limits) {
        for (state, number) in std::mem::take(&mut visit.frontier) {
            for (index, action) in self.system.actions(&state).iter().enumerate() {
                let Some(next) = self.system.step(&state, action) else {
                    continue;
                };
                visit.report.steps += 1;
                let origin = Origin {
                    from: number,
                    action: index as u16,
                };
                self.reach(visit, next, origin);
                if visit.report.violation.is_some() || visit.report.states >= limits.states {
                    return;
                }
            }
        }
    }

    /// Takes in a state that was reached.
    fn reach(&self, visit: &mut Visit<S::State>, state: S::State, origin: Origin) {
        // Before it is known whether the state is new, since what is looked for
        // can be about the way to it.
        for ((_, is_seen), sight) in self.sometimes.iter().zip(&mut visit.report.sights) {
            if is_seen(&state) {
                sight.times += 1;
                if sight.times == 1 {
                    sight.path = path(&visit.origins, origin);
                }
            }
        }
        if !visit.seen.insert(fingerprint(&state)) {
            return;
        }
        let number = visit.origins.len() as u32;
        visit.origins.push(origin);
        visit.report.states += 1;
        for (name, holds) in &self.always {
            if let Err(message) = holds(&state) {
                let path = path(&visit.origins, origin);
                let steps = self.replay(&path).map(|(steps, _)| steps);
                visit.report.violation = Some(Trail {
                    property: name.clone(),
                    message,
                    steps: steps.unwrap_or_default(),
                });
                return;
            }
        }
        visit.frontier.push((state, number));
    }

    /// Goes a way again, given as the numbers of its actions (the first one is
    /// that of the start), and returns its steps and the state at its end.
    ///
    /// # Errors
    /// A sentence when there is no such way.
    pub fn replay(&self, path: &[usize]) -> Result<(Vec<Step>, S::State), String> {
        let mut steps = Vec::new();
        let mut rest = path.iter();
        let &first = rest
            .next()
            .ok_or("a way begins with the number of a start")?;
        let mut state = self
            .system
            .start()
            .into_iter()
            .nth(first)
            .ok_or_else(|| format!("there is no start {first}"))?;
        steps.push(Step {
            index: first,
            action: "start".to_owned(),
        });
        for &index in rest {
            let actions = self.system.actions(&state);
            let at = steps.len();
            let action = actions
                .get(index)
                .ok_or_else(|| format!("step {at} has no action {index}"))?;
            let action_text = self.system.describe(&state, action);
            state = self
                .system
                .step(&state, action)
                .ok_or_else(|| format!("nothing comes of action {index} at step {at}"))?;
            steps.push(Step {
                index,
                action: action_text,
            });
        }
        Ok((steps, state))
    }

    /// Returns the first property that `state` violates, and how.
    pub fn violated(&self, state: &S::State) -> Option<(&str, String)> {
        self.always
            .iter()
            .find_map(|(name, holds)| Some((name.as_str(), holds(state).err()?)))
    }
}

/// Returns the numbers of the actions that lead to what comes from `last`.
fn path(origins: &[Origin], last: Origin) -> Vec<usize> {
    let mut path = vec![usize::from(last.action)];
    let mut from = last.from;
    while let Some(origin) = origins.get(from as usize) {
        path.push(usize::from(origin.action));
        from = origin.from;
    }
    path.reverse();
    path
}
