//! The bench: drives a machine in virtual time against the scripted cluster.
//!
//! A test says what is different from a cluster that answers well, lets time
//! run, and looks at what the machine asked and said. After every input the
//! machine's own invariants and the watch (rules that always hold) are checked.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use snapshot_prepare::error::{Error, ErrorKind, FailureKind};
use snapshot_prepare::machine::{Config, Event, Machine, Notice, Outcome, RequestId};
use snapshot_prepare::progress::{FinishReport, PhaseName, ReleaseState};
use snapshot_prepare::region::{RegionErrorKind, StoreId};
use snapshot_prepare::time::Timestamp;

use crate::cluster::{Ask, Cluster, failure, said};
use crate::watch::Watch;

/// What becomes of one question.
pub(crate) enum Act {
    /// It is answered well.
    Well,
    /// It is answered well, but only then.
    After(Duration),
    /// It is never answered, unless the test does so from `withheld`.
    Never,
    /// The call, or the stream, fails.
    Fail(FailureKind),
    /// The region refuses the wait or the read.
    Refuse(RegionErrorKind),
    /// The lease was, or was not, in force.
    Valid(bool),
    /// These events come, each after its time.
    Say(Vec<(Duration, Event)>),
}

type Script = Box<dyn FnMut(&Ask) -> Option<Act>>;

/// What came in and went out, in order.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    In(Event),
    Out(Ask),
    Said(Notice),
}

enum Pending {
    Tell(Event),
    Answer(Ask),
}

/// How long every answer takes.
pub(crate) const LATENCY: Duration = Duration::from_millis(1);
/// More inputs than any test needs: beyond them the machine is going in circles.
const STEPS_MAX: usize = 200_000;

pub(crate) struct Bench {
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    pub(crate) started: Timestamp,
    pub(crate) cluster: Cluster,
    pub(crate) log: Vec<(Timestamp, Line)>,
    pub(crate) withheld: Vec<Ask>,
    watch: Watch,
    scripts: Vec<Script>,
    pending: BTreeMap<(Timestamp, u64), Pending>,
    next: u64,
    steps: usize,
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Building and changing.
impl Bench {
    /// Three stores, six regions, default configuration.
    pub(crate) fn new() -> Self {
        Self::with(3, 6, |_| {})
    }

    pub(crate) fn with(stores: u64, regions: u64, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        Self::over(Cluster::new(stores, regions), config)
    }

    pub(crate) fn over(cluster: Cluster, config: Config) -> Self {
        // Not zero, so that nothing rests on the clock's start.
        let now = Timestamp::from_micros(7_000_000_000);
        let machine = Machine::new(config.clone(), now).expect("the configuration works");
        Self {
            machine,
            now,
            started: now,
            cluster,
            log: Vec::new(),
            withheld: Vec::new(),
            watch: Watch::new(config),
            scripts: Vec::new(),
            pending: BTreeMap::new(),
            next: 0,
            steps: 0,
        }
    }

    /// Treats questions differently from now on; the newest script is asked
    /// first, `None` leaves a question to the others.
    pub(crate) fn on(&mut self, script: impl FnMut(&Ask) -> Option<Act> + 'static) {
        self.scripts.push(Box::new(script));
    }

    /// Treats the questions that `which` picks as `act` says.
    pub(crate) fn when(
        &mut self,
        which: impl Fn(&Ask) -> bool + 'static,
        act: impl Fn() -> Act + 'static,
    ) {
        self.on(move |ask| which(ask).then(&act));
    }

    /// Treats only the first `count` questions that `which` picks so.
    pub(crate) fn first(
        &mut self,
        count: usize,
        which: impl Fn(&Ask) -> bool + 'static,
        act: impl Fn() -> Act + 'static,
    ) {
        let mut left = count;
        self.on(move |ask| {
            if left == 0 || !which(ask) {
                return None;
            }
            left -= 1;
            Some(act())
        });
    }

    /// Answers everything well again. What is withheld stays so.
    pub(crate) fn well_again(&mut self) {
        self.scripts.clear();
    }

    /// Hands an event to the machine now.
    pub(crate) fn tell(&mut self, event: Event) {
        self.start();
        self.log.push((self.now, Line::In(event.clone())));
        self.watch.heard(&event, self.now);
        self.machine.handle_event(event, self.now);
        self.drain();
    }

    /// Answers what was withheld and picked, well and now.
    pub(crate) fn release(&mut self, which: impl Fn(&Ask) -> bool) {
        let (go, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.withheld)
            .into_iter()
            .partition(which);
        self.withheld = stay;
        assert!(!go.is_empty(), "nothing like that was withheld");
        for ask in go {
            for (_, event) in self.cluster.answer(&ask, self.now) {
                self.tell(event);
            }
        }
    }
}

/// Running.
impl Bench {
    /// Lets time pass until `at` at the latest, one input at a time.
    fn step(&mut self, at: Timestamp) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "the machine goes in circles");
        let timer = self.machine.poll_timeout().unwrap_or(Timestamp::MAX);
        let answer = self.pending.keys().next().map_or(Timestamp::MAX, |k| k.0);
        let next = timer.min(answer).min(at);
        self.now = self.now.max(next);
        if answer == next {
            match self.pending.pop_first().map(|(_, pending)| pending) {
                Some(Pending::Tell(event)) => self.tell(event),
                Some(Pending::Answer(ask)) => {
                    let events = self.cluster.answer(&ask, self.now);
                    for (delay, event) in events {
                        self.plan(delay, Pending::Tell(event));
                    }
                }
                None => unreachable!("there was one"),
            }
        } else {
            self.machine.handle_timeout(self.now);
            self.drain();
        }
    }

    fn plan(&mut self, delay: Duration, pending: Pending) {
        self.next += 1;
        self.pending.insert((self.now + delay, self.next), pending);
    }

    fn start(&mut self) {
        if self.log.is_empty() {
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            self.watch.effect(&effect, &self.machine, self.now);
            for ask in Ask::of(&effect) {
                self.log.push((self.now, Line::Out(ask.clone())));
                self.act(ask);
            }
        }
        while let Some(notice) = self.machine.poll_notice() {
            self.log.push((self.now, Line::Said(notice)));
        }
        if let Err(broken) = self.machine.check_invariants() {
            panic!("an invariant is broken: {broken}");
        }
        self.watch.after(&self.machine, self.now);
    }

    fn act(&mut self, ask: Ask) {
        if let Ask::Close { stream, .. } = ask {
            self.forget(stream);
        }
        let act = self
            .scripts
            .iter_mut()
            .rev()
            .find_map(|script| script(&ask))
            .unwrap_or(Act::Well);
        match act {
            Act::Well => self.plan(LATENCY, Pending::Answer(ask)),
            Act::After(delay) => self.plan(delay, Pending::Answer(ask)),
            Act::Never => self.withheld.push(ask),
            Act::Fail(kind) => self.plan(LATENCY, Pending::Tell(ask.failed(failure(kind)))),
            Act::Refuse(kind) => {
                self.plan(LATENCY, Pending::Tell(ask.result(Err(said(kind)))));
            }
            Act::Valid(valid) => self.plan(LATENCY, Pending::Tell(ask.valid(valid))),
            Act::Say(events) => {
                for (delay, event) in events {
                    self.plan(delay, Pending::Tell(event));
                }
            }
        }
    }

    /// Drops what a closed stream had still to say, as a driver does.
    fn forget(&mut self, stream: RequestId) {
        self.pending.retain(|_, pending| match pending {
            Pending::Answer(ask) => ask.stream() != Some(stream),
            Pending::Tell(event) => stream_of(event) != Some(stream),
        });
    }

    /// Runs until `done`, at most for two hours.
    pub(crate) fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        self.start();
        let end = self.now + secs(7200);
        while !done(self) {
            assert!(self.now < end, "two hours passed and still not: {what}");
            assert!(
                self.machine.outcome().is_none(),
                "the run is over ({:?}) and still not: {what}",
                self.machine.outcome()
            );
            self.step(end);
        }
    }

    pub(crate) fn run_to(&mut self, phase: PhaseName) {
        self.run_until(phase.as_str(), |bench| bench.machine.phase() == phase);
    }

    /// Runs until that question was asked once more.
    pub(crate) fn run_to_ask(&mut self, what: &str, which: impl Fn(&Ask) -> bool) -> Ask {
        self.start();
        let from = self.log.len();
        self.run_until(what, |bench| {
            bench.asked_since(from, &which).next().is_some()
        });
        let found = self.asked_since(from, &which).next();
        found.map(|(_, ask)| ask.clone()).expect("it was asked")
    }

    pub(crate) fn run_for(&mut self, duration: Duration) {
        self.start();
        let end = self.now + duration;
        loop {
            let timer = self.machine.poll_timeout().unwrap_or(Timestamp::MAX);
            let answer = self.pending.keys().next().map_or(Timestamp::MAX, |k| k.0);
            if timer.min(answer) > end {
                self.now = end;
                return;
            }
            self.step(end);
        }
    }

    pub(crate) fn run_to_end(&mut self) -> Outcome {
        self.run_until("closed", |bench| bench.machine.outcome().is_some());
        self.machine.outcome().cloned().expect("closed")
    }

    /// Asks for the end of the hold and runs to the end.
    pub(crate) fn finish(&mut self) -> Outcome {
        self.tell(Event::FinishRequested);
        self.run_to_end()
    }
}

/// Looking.
impl Bench {
    /// Returns a mark for the questions to come.
    pub(crate) fn mark(&mut self) -> usize {
        self.start();
        self.log.len()
    }

    pub(crate) fn asked_since<'a>(
        &'a self,
        mark: usize,
        which: impl Fn(&Ask) -> bool + 'a,
    ) -> impl Iterator<Item = (Timestamp, &'a Ask)> + 'a {
        self.log[mark..]
            .iter()
            .filter_map(move |(at, line)| match line {
                Line::Out(ask) if which(ask) => Some((*at, ask)),
                _ => None,
            })
    }

    /// Returns when the questions that `which` picks were asked.
    pub(crate) fn times(&self, which: impl Fn(&Ask) -> bool) -> Vec<Timestamp> {
        self.asked_since(0, which).map(|(at, _)| at).collect()
    }

    pub(crate) fn count(&self, which: impl Fn(&Ask) -> bool) -> usize {
        self.asked_since(0, which).count()
    }

    pub(crate) fn count_since(&self, mark: usize, which: impl Fn(&Ask) -> bool) -> usize {
        self.asked_since(mark, which).count()
    }

    /// Returns the last question of that kind.
    pub(crate) fn last(&self, which: impl Fn(&Ask) -> bool) -> Option<Ask> {
        self.asked_since(0, which)
            .last()
            .map(|(_, ask)| ask.clone())
    }

    pub(crate) fn notices(&self) -> impl Iterator<Item = (Timestamp, &Notice)> {
        self.log.iter().filter_map(|(at, line)| match line {
            Line::Said(notice) => Some((*at, notice)),
            _ => None,
        })
    }

    /// Returns when the events that `which` picks came in.
    pub(crate) fn heard(&self, which: impl Fn(&Event) -> bool) -> Vec<Timestamp> {
        self.log
            .iter()
            .filter_map(|(at, line)| match line {
                Line::In(event) if which(event) => Some(*at),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn phase(&self) -> PhaseName {
        self.machine.phase()
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.machine.progress().attempt
    }

    pub(crate) fn ignored(&self) -> u64 {
        self.machine.progress().ignored_answers
    }

    pub(crate) fn report(&self) -> &FinishReport {
        self.machine.finish_report().expect("the run is over")
    }

    /// Returns what became of a store's lease.
    pub(crate) fn state_of(&self, store: u64) -> Option<ReleaseState> {
        self.report()
            .stores
            .iter()
            .find(|(id, _)| *id == StoreId(store))
            .map(|(_, state)| *state)
    }

    /// Returns how long ago the run started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now.saturating_duration_since(self.started)
    }

    /// Returns the causes of the attempts that failed.
    pub(crate) fn causes(&self) -> Vec<Error> {
        self.notices()
            .filter_map(|(_, notice)| match notice {
                Notice::AttemptFailed { cause, .. } => Some(cause.clone()),
                _ => None,
            })
            .collect()
    }
}

/// Returns the error of an outcome that has to be a failed run.
#[track_caller]
pub(crate) fn failed(outcome: &Outcome, kind: ErrorKind) -> Error {
    match outcome {
        Outcome::Failed(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            error.clone()
        }
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// Returns the error of an outcome that has to be a lost hold.
#[track_caller]
pub(crate) fn lost(outcome: &Outcome, kind: ErrorKind) -> Error {
    match outcome {
        Outcome::HoldLost(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            error.clone()
        }
        other => panic!("expected a lost hold, got {other:?}"),
    }
}

fn stream_of(event: &Event) -> Option<RequestId> {
    match event {
        Event::StreamOpened { stream }
        | Event::StreamEnded { stream, .. }
        | Event::WaitApplyDone { stream, .. } => Some(*stream),
        _ => None,
    }
}

/// Shows the last of what happened when a test fails.
impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut text = String::new();
        let from = self.log.len().saturating_sub(80);
        for (at, line) in &self.log[from..] {
            let _ = writeln!(text, "{at} {line:?}");
        }
        let phase = self.machine.phase();
        eprintln!("{text}now {}, phase {phase}", self.now);
    }
}
