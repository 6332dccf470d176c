//! A machine, the monitor that watches it, and the tiny cluster that answers it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use crate::machine::{Config, Effect, Event, Machine, Notice};
use crate::progress::PhaseName;
use crate::time::Timestamp;

use super::answer::How;
use super::monitor::Monitor;
use super::moves::{Move, Plan};
use super::sometimes::Sometimes;
use super::world::{Asked, World};

/// How many lines of the trace a failure shows.
const TRACE: usize = 60;
/// The most effects that one input may lead to, with a cluster as tiny as this.
const EFFECTS_MAX: usize = 200;

/// One run: the machine, what answers it, and what watches it.
#[derive(Clone, Debug)]
pub struct Run {
    pub machine: Machine,
    pub monitor: Monitor,
    pub world: World,
    pub now: Timestamp,
    /// The time that the machine was told last.
    told: Timestamp,
    /// The phases entered so far.
    pub phases: Vec<PhaseName>,
    /// What of note happened.
    pub sometimes: Sometimes,
    /// Every effect, for comparisons.
    pub effects: Vec<Effect>,
    /// Every input with its time, and how many effects there were before it;
    /// `None` for time that passed.
    pub inputs: Vec<(Option<Event>, Timestamp, usize)>,
    trace: VecDeque<String>,
}

impl Run {
    pub fn new(config: Config, world: World) -> Result<Self, String> {
        let now = Timestamp::from_micros(7_000_000);
        let machine = Machine::new(config.clone(), now).map_err(|error| error.to_string())?;
        Self::of(machine, config, world, now)
    }

    /// Begins with a machine in normal form.
    pub fn normal(config: Config, world: World, horizon: Duration) -> Result<Self, String> {
        let mut machine =
            Machine::new(config.clone(), Timestamp::ZERO).map_err(|error| error.to_string())?;
        machine.normalize(horizon, []);
        Self::of(machine, config, world, Machine::NORMAL_NOW)
    }

    fn of(machine: Machine, config: Config, world: World, now: Timestamp) -> Result<Self, String> {
        let mut run = Self {
            machine,
            monitor: Monitor::new(config, now),
            world,
            now,
            told: now,
            phases: vec![PhaseName::Connect],
            sometimes: Sometimes::default(),
            effects: Vec::new(),
            inputs: Vec::new(),
            trace: VecDeque::new(),
        };
        while run.machine.poll_notice().is_some() {}
        run.drain()?;
        Ok(run)
    }

    pub fn is_over(&self) -> bool {
        self.machine.outcome().is_some()
    }

    fn note(&mut self, line: String) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// Returns what a failure has to show.
    pub fn explain(&self, what: &str) -> String {
        let mut text = format!("{what}\nthe last inputs and outputs:");
        for line in &self.trace {
            // Writing into a String cannot fail.
            let _ = write!(text, "\n  {line}");
        }
        text
    }

    /// Hands in an event. Where time passed since the last input, the deadlines
    /// in between are dealt with first; the machine has to do that by itself, so
    /// a copy that is handed the event at once has to come out the same.
    pub fn event(&mut self, event: Event) -> Result<(), String> {
        if self.told == self.now {
            return self.hand_in(event);
        }
        let mut copy = self.machine.clone();
        copy.handle_event(event.clone(), self.now);
        while copy.poll_effect().is_some() || copy.poll_notice().is_some() {}
        self.pass(Duration::ZERO)?;
        self.hand_in(event)?;
        let view = |machine: &Machine| {
            let outcome = machine.outcome().cloned();
            (outcome, machine.progress(), machine.poll_timeout())
        };
        if view(&copy) == view(&self.machine) {
            Ok(())
        } else {
            Err("a late event leads elsewhere than its deadlines and then it".to_owned())
        }
    }

    fn hand_in(&mut self, event: Event) -> Result<(), String> {
        self.note(format!("{} <- {event:?}", self.now));
        self.monitor.advance(self.now);
        self.monitor.event(&event);
        let input = (Some(event.clone()), self.now, self.effects.len());
        self.inputs.push(input);
        self.machine.handle_event(event, self.now);
        self.drain()
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) -> Result<(), String> {
        self.now = self.now + time;
        self.told = self.now;
        self.note(format!("{} <- timeout", self.now));
        self.monitor.advance(self.now);
        self.inputs.push((None, self.now, self.effects.len()));
        self.machine.handle_timeout(self.now);
        self.drain()
    }

    /// Lets time pass without telling the machine before the next event.
    pub fn pass_silently(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn drain(&mut self) -> Result<(), String> {
        let mut notices = Vec::new();
        while let Some(notice) = self.machine.poll_notice() {
            notices.push(notice);
        }
        let entered = entered(&notices);
        let before = self.effects.len();
        while let Some(effect) = self.machine.poll_effect() {
            self.note(format!("{} -> {effect:?}", self.now));
            self.monitor.effect(&effect, &entered)?;
            self.world.take(&effect);
            self.effects.push(effect);
        }
        for phase in &entered {
            self.note(format!("{} == {phase}", self.now));
        }
        self.note_phases(&notices, before);
        if self.effects.len() - before > EFFECTS_MAX {
            return Err("too many effects of one input (R7)".to_owned());
        }
        self.monitor.after(&self.machine, &notices)
    }

    /// Notes the phases that were entered, and what of note happened.
    pub(super) fn note_phases(&mut self, notices: &[Notice], before: usize) {
        let entered = entered(notices);
        self.phases.extend(&entered);
        let effects = &self.effects[before..];
        self.sometimes.note(notices, effects, &self.phases);
        let is_new = entered.contains(&PhaseName::Closed);
        if let Some(outcome) = self.machine.outcome().filter(|_| is_new) {
            self.sometimes.note_outcome(outcome, &self.phases);
        }
    }

    /// Answers the outstanding thing at `index`.
    pub fn answer(&mut self, index: usize, how: &How) -> Result<(), String> {
        let Some(asked) = self.take_asked(index) else {
            return Ok(());
        };
        let event = self.world.answer(&asked, how, self.now);
        self.world.old.push(asked);
        self.event(event)
    }

    /// Takes the outstanding thing at `index` off the list, or what has to be
    /// answered before it.
    pub(in crate::fuzz) fn take_asked(&mut self, index: usize) -> Option<Asked> {
        let picked = self.world.outstanding.get(index).cloned()?;
        // A store answers leases in the order in which they were asked for.
        let index = match picked {
            Asked::Lease { stream, .. } | Asked::Finish { stream, .. } => self
                .world
                .outstanding
                .iter()
                .position(|asked| {
                    matches!(asked, Asked::Lease { stream: id, .. } | Asked::Finish { stream: id, .. } if *id == stream)
                })
                .unwrap_or(index),
            _ => index,
        };
        Some(self.world.outstanding.remove(index))
    }

    /// Answers all that is outstanding now and passes `test`, and well.
    fn answer_all(&mut self, test: impl Fn(&Asked) -> bool) -> Result<(), String> {
        for asked in self.world.outstanding.clone() {
            if !test(&asked) {
                continue;
            }
            let index = self.world.outstanding.iter().position(|it| *it == asked);
            if let Some(index) = index {
                self.answer(index, &How::Well)?;
            }
        }
        Ok(())
    }

    /// Does what a plan says, and then lets the run end.
    pub fn follow(&mut self, plan: &Plan) -> Result<(), String> {
        for step in &plan.moves {
            self.step(step)?;
        }
        self.run_to_hold()?;
        for step in &plan.in_hold {
            self.step(step)?;
        }
        self.run_out()
    }

    /// Makes a move of a plan.
    pub fn step(&mut self, step: &Move) -> Result<(), String> {
        let pick = |which: u8, len: usize| usize::from(which) % len.max(1);
        match step {
            Move::AnswerAll => self.answer_all(|_| true),
            Move::AnswerAllButLeases => {
                self.answer_all(|asked| !matches!(asked, Asked::Lease { .. }))
            }
            Move::Answer(which, how) => {
                self.answer(pick(*which, self.world.outstanding.len()), how)
            }
            Move::Again(which, how) => {
                let index = pick(*which, self.world.old.len());
                match self.world.old.get(index).cloned() {
                    // What has ended cannot end again.
                    None | Some(Asked::End { .. } | Asked::Open { .. }) => Ok(()),
                    Some(asked) => {
                        let mut elsewhere = self.world.clone();
                        let event = elsewhere.answer(&asked, how, self.now);
                        self.event(event)
                    }
                }
            }
            Move::Drop(which) => {
                let index = pick(*which, self.world.outstanding.len());
                if index < self.world.outstanding.len() {
                    let asked = self.world.outstanding.remove(index);
                    self.world.old.push(asked);
                }
                Ok(())
            }
            Move::EndStream(which, kind) => {
                let streams: Vec<_> = self.world.streams.keys().copied().collect();
                match streams.get(pick(*which, streams.len())) {
                    None => Ok(()),
                    Some(stream) => {
                        let event = self.world.end_stream(*stream, *kind);
                        self.event(event)
                    }
                }
            }
            Move::Change(change) => {
                self.world.change(change);
                Ok(())
            }
            Move::Pass(millis) => self.pass(Duration::from_millis(u64::from(*millis))),
            Move::PassSilently(millis) => {
                self.pass_silently(Duration::from_millis(u64::from(*millis)));
                Ok(())
            }
            Move::NextDeadline => self.next_deadline(),
            Move::Finish => self.event(Event::FinishRequested),
            Move::Cancel => self.event(Event::CancelRequested),
            Move::LockLost => self.event(Event::LockLost),
        }
    }

    /// Lets time pass until the next deadline, one microsecond too early first.
    pub fn next_deadline(&mut self) -> Result<(), String> {
        let Some(at) = self.machine.poll_timeout() else {
            return Ok(());
        };
        let time = at.saturating_duration_since(self.now);
        let early = time.saturating_sub(Duration::from_micros(1));
        if !early.is_zero() {
            self.pass(early)?;
        }
        self.pass(at.saturating_duration_since(self.now))
    }

    /// Answers everything well and lets time pass until the hold is reached or
    /// the run is over.
    pub fn run_to_hold(&mut self) -> Result<(), String> {
        for round in 0..4_000 {
            if round == 40 {
                // What keeps a hold away has kept it away for long enough.
                self.world.calm();
            }
            if self.is_over() || self.machine.phase() == PhaseName::Hold {
                return Ok(());
            }
            self.go_on()?;
        }
        Err(self.endless())
    }

    /// Answers one thing after another, and well, until the phase is reached or
    /// the run is over.
    pub fn run_to(&mut self, phase: PhaseName) -> Result<(), String> {
        for _ in 0..1_000 {
            if self.is_over() || self.machine.phase() == phase {
                break;
            }
            if self.world.outstanding.is_empty() {
                self.next_deadline()?;
            } else {
                self.answer(0, &How::Well)?;
            }
        }
        Ok(())
    }

    /// Does all that until the run is over; once the hold is reached, finishes.
    pub fn run_out(&mut self) -> Result<(), String> {
        self.world.calm();
        for _ in 0..4_000 {
            if self.is_over() {
                return Ok(());
            }
            if self.machine.phase() == PhaseName::Hold {
                self.event(Event::FinishRequested)?;
            } else {
                self.go_on()?;
            }
        }
        Err(self.endless())
    }

    fn go_on(&mut self) -> Result<(), String> {
        if self.world.outstanding.is_empty() {
            return self.next_deadline();
        }
        self.pass(Duration::from_millis(1))?;
        self.answer_all(|_| true)
    }

    fn endless(&self) -> String {
        let waits = self.machine.waiting_for(5);
        format!("the run does not end: it waits for {waits}")
    }
}

fn entered(notices: &[Notice]) -> Vec<PhaseName> {
    let phases = notices.iter().filter_map(|notice| match notice {
        Notice::PhaseEntered { phase, .. } => Some(*phase),
        _ => None,
    });
    phases.collect()
}
