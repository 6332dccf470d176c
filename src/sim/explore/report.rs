use std::fmt;

/// What an exploration found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Distinct states.
    pub states: u64,
    /// Steps taken, also those that led to states known before.
    pub steps: u64,
    /// The most steps from a start to a state.
    pub depth: u32,
    /// Whether everything within the system's own bounds was visited; `false`
    /// when a limit, or a violation, ended the exploration.
    pub is_complete: bool,
    /// What was looked for, in the order in which it was named.
    pub sights: Vec<Sight>,
    /// The first violation, if any.
    pub violation: Option<Trail>,
}

/// A 'sometimes' property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sight {
    /// Its name.
    pub name: String,
    /// After how many steps it was seen.
    pub times: u64,
    /// The shortest way there, as numbers of actions; empty when it was not seen.
    pub path: Vec<usize>,
}

/// A way through the state space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trail {
    /// The property that does not hold at its end.
    pub property: String,
    /// How.
    pub message: String,
    /// The steps there.
    pub steps: Vec<Step>,
}

/// One step of a way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The number of the action among those of its state, for a replay.
    pub index: usize,
    /// What happened.
    pub action: String,
}

impl Report {
    /// Returns whether nothing was violated and everything looked for was seen.
    pub fn is_good(&self) -> bool {
        self.violation.is_none() && self.unseen().next().is_none()
    }

    /// Returns the names of what was looked for and not seen.
    pub fn unseen(&self) -> impl Iterator<Item = &str> {
        let unseen = self.sights.iter().filter(|sight| sight.times == 0);
        unseen.map(|sight| sight.name.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} distinct states, {} steps, at most {} steps deep; {}",
            self.states,
            self.steps,
            self.depth,
            if self.is_complete {
                "the whole space within the bounds"
            } else {
                "not the whole space"
            }
        )?;
        for sight in &self.sights {
            match sight.times {
                0 => writeln!(f, "  never seen: {}", sight.name)?,
                times => writeln!(
                    f,
                    "  seen {times} times, first after {} steps: {}",
                    sight.path.len() - 1,
                    sight.name
                )?,
            }
        }
        match &self.violation {
            None => writeln!(f, "no property was violated"),
            Some(trail) => trail.fmt(f),
        }
    }
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "VIOLATED: {}: {}", self.property, self.message)?;
        writeln!(f, "after {} steps:", self.steps.len().saturating_sub(1))?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {number:3} {}", step.action)?;
        }
        let path: Vec<_> = self.steps.iter().map(|s| s.index.to_string()).collect();
        writeln!(f, "replay: {}", path.join("."))
    }
}
