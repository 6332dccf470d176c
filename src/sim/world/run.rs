use std::time::Duration;

use super::floor::Ledger;
use super::link::Link;
use super::story::{Story, Teller};
use super::trace::Trace;
use super::{Ended, Report, Setup, Sizes};
use crate::error::ErrorKind;
use crate::machine::{Event, ForeignLease, Machine, Notice, Outcome};
use crate::region::StoreId;
use crate::sim::fault::{FaultKind, FaultLevel};
use crate::sim::model::Cluster;
use crate::sim::oracle::{Claimed, Verdict, Violation, judge};
use crate::time::Timestamp;

/// The clock of every run starts here.
const START: Timestamp = Timestamp::from_micros(1_000_000_000);
/// The most inputs to the machine, and how many more for each region.
const STEPS_MAX: u64 = 3_000_000;
const STEPS_PER_REGION: u64 = 50;
/// How long a run may go on after its own deadlines.
const GRACE: Duration = Duration::from_secs(120);

/// Draws a run from a seed and carries it out.
pub fn run_seed(seed: u64, level: FaultLevel, sizes: &Sizes) -> Report {
    run(Setup::derive(seed, level, sizes))
}

/// Carries out a run.
pub fn run(setup: Setup) -> Report {
    carry_out(setup, None).0
}

/// Carries out a run and tells it as a story; with `reveals_keys` also the keys
/// in it.
pub fn tell(setup: Setup, reveals_keys: bool) -> Story {
    let (report, teller) = carry_out(setup, Some(reveals_keys));
    Story {
        report,
        lines: teller.map(Teller::into_lines).unwrap_or_default(),
    }
}

fn carry_out(setup: Setup, tells: Option<bool>) -> (Report, Option<Teller>) {
    match World::new(setup, tells) {
        Ok(mut world) => {
            world.go();
            world.report()
        }
        Err(report) => (*report, None),
    }
}

struct World {
    setup: Setup,
    machine: Machine,
    cluster: Cluster,
    link: Link,
    now: Timestamp,
    started: Timestamp,
    finish_at: Option<Timestamp>,
    cancel_at: Option<Timestamp>,
    pauses: Vec<(Timestamp, Duration)>,
    held: bool,
    retried: bool,
    steps: u64,
    stuck: Option<&'static str>,
    violations: Vec<Violation>,
    trace: Trace,
    ledger: Ledger,
    teller: Option<Teller>,
}

impl World {
    fn new(setup: Setup, tells: Option<bool>) -> Result<Self, Box<Report>> {
        let layout = setup.layout();
        let mut cluster = Cluster::new(&layout, setup.plan.clone(), setup.seed, START);
        let started = START + setup.plan.warm_up;
        cluster.handle_timeout(started);
        let machine = match Machine::new(setup.config.clone(), started) {
            Ok(machine) => machine,
            Err(error) => return Err(Box::new(refused(setup, error.kind()))),
        };
        let pauses = setup.pauses.iter().rev();
        let mut teller = tells.map(|reveals_keys| Teller::new(started, reveals_keys));
        if let Some(teller) = &mut teller {
            teller.strikes(started, cluster.strikes());
        }
        Ok(Self {
            machine,
            cluster,
            link: Link::default(),
            now: started,
            started,
            finish_at: None,
            cancel_at: setup.cancel_after.map(|after| started + after),
            pauses: pauses
                .map(|&(at, lasting)| (started + at, lasting))
                .collect(),
            held: false,
            retried: false,
            steps: 0,
            stuck: None,
            violations: Vec::new(),
            trace: Trace::default(),
            ledger: Ledger::default(),
            teller,
            setup,
        })
    }

    fn go(&mut self) {
        let config = &self.setup.config;
        let end = self.started + config.prepare_timeout + self.setup.hold + GRACE;
        let most = STEPS_MAX + STEPS_PER_REGION * u64::from(self.setup.regions);
        self.after_input();
        while self.machine.outcome().is_none() {
            if self.steps > most {
                self.stuck = Some("it does not come to an end: too many steps");
            } else if self.now > end {
                self.stuck = Some("it did not end in time");
            }
            if self.stuck.is_some() || !self.advance() {
                break;
            }
        }
        if self.machine.outcome().is_none() && self.stuck.is_none() {
            self.stuck = Some("nothing is left to happen");
        }
        // Lets what is on its way arrive, for the oracle.
        self.cluster
            .handle_timeout(self.now + Duration::from_secs(1));
    }

    /// Moves to the next instant at which something happens.
    fn advance(&mut self) -> bool {
        let next = [
            self.machine.poll_timeout(),
            self.cluster.poll_timeout(),
            self.finish_at,
            self.cancel_at,
        ];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        if let Some(&(at, lasting)) = self.pauses.last()
            && at <= self.now
        {
            self.pauses.pop();
            self.now = self.now + lasting;
            self.cluster.note_strike(FaultKind::ClientPause);
        }
        self.cluster.handle_timeout(self.now);
        while let Some(lasting) = self.cluster.poll_pause() {
            self.now = self.now + lasting;
            self.cluster.handle_timeout(self.now);
        }
        if let Some(teller) = &mut self.teller {
            teller.strikes(self.now, self.cluster.strikes());
        }
        self.link.drop_closed(&mut self.cluster, self.now);
        while let Some((call, answer)) = self.cluster.poll_answer() {
            if let Some(event) = self.link.read(call, answer) {
                self.input(event);
            }
        }
        if self.finish_at.is_some_and(|at| at <= self.now) {
            self.finish_at = None;
            self.cluster.note_finish(self.now);
            self.input(Event::FinishRequested);
        }
        if self.cancel_at.is_some_and(|at| at <= self.now) {
            self.cancel_at = None;
            self.input(Event::CancelRequested);
        }
        if self.machine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.trace.step(self.now, &"timeout");
            self.machine.handle_timeout(self.now);
            self.after_input();
        }
        true
    }

    fn input(&mut self, event: Event) {
        self.trace.step(self.now, &event);
        self.ledger.answered(&event, self.now);
        if let Some(teller) = &mut self.teller {
            teller.event(self.now, &event);
        }
        self.machine.handle_event(event, self.now);
        self.after_input();
    }

    /// Carries out what the machine wants.
    fn after_input(&mut self) {
        self.steps += 1;
        self.retried |= self.machine.progress().retrying > 0;
        // They look at every region, so that large runs look now and then only.
        let stride = 1 + u64::from(self.setup.regions) / 16;
        if cfg!(debug_assertions)
            && self.steps.is_multiple_of(stride)
            && let Err(broken) = self.machine.check_invariants()
            && self.violations.len() < 5
        {
            self.violations.push(Violation::new("invariants", broken));
            if let Some(teller) = &mut self.teller {
                teller.note(self.now, "an invariant of the machine is broken");
                teller.freeze();
            }
        }
        while let Some(notice) = self.machine.poll_notice() {
            self.notice(&notice);
        }
        while let Some(effect) = self.machine.poll_effect() {
            self.trace.step(self.now, &effect);
            self.ledger.sent(&effect, self.now);
            if let Some(teller) = &mut self.teller {
                teller.effect(self.now, &effect);
            }
            self.link.carry_out(effect, &mut self.cluster, self.now);
        }
    }

    fn notice(&mut self, notice: &Notice) {
        self.trace.step(self.now, notice);
        self.ledger.told(notice, self.now);
        if let Some(teller) = &mut self.teller {
            teller.notice(self.now, notice);
        }
        match notice {
            Notice::PhaseEntered { phase, .. } => self.cluster.note_phase(*phase),
            Notice::Held(_) => {
                self.held = true;
                self.ledger.held(&self.cluster);
                self.cluster.note_hold(self.now);
                self.finish_at = Some(self.now + self.setup.hold);
            }
            Notice::HoldLost(_) => {
                self.cluster.note_lost(self.now);
                self.finish_at = None;
            }
            _ => {}
        }
    }

    fn claimed(&self) -> Claimed {
        let verdict = match self.machine.outcome() {
            Some(Outcome::Finished) => Verdict::Good,
            _ if self.held => Verdict::NotGood,
            _ => Verdict::NotHeld,
        };
        let stores: Vec<StoreId> = self
            .machine
            .prepare_report()
            .map(|report| report.stores.iter().map(|(id, _)| *id).collect())
            .unwrap_or_default();
        Claimed {
            verdict,
            stores,
            lease: Some(self.setup.config.lease),
            window: Some(self.setup.config.window),
            failed: match self.machine.outcome() {
                Some(Outcome::Failed(error) | Outcome::HoldLost(error)) => Some(error.kind()),
                _ => None,
            },
            prepare_timeout: Some(self.setup.config.prepare_timeout),
            leaves_foreign: self.setup.config.foreign_lease == ForeignLease::Refuse,
        }
    }

    fn report(mut self) -> (Report, Option<Teller>) {
        let ended = match self.machine.outcome() {
            None => Ended::Stuck,
            Some(Outcome::Finished) => Ended::Finished,
            Some(Outcome::Cancelled) => Ended::Cancelled,
            Some(Outcome::HoldLost(error)) => Ended::HoldLost(error.kind()),
            Some(Outcome::Failed(error)) => Ended::Failed(error.kind()),
        };
        if let Some(why) = self.stuck {
            let message = format!("{why}; {}", self.machine.waiting_for(5));
            self.violations
                .push(Violation::new("the run ends", message));
        }
        self.violations
            .extend(judge(&self.cluster, &self.claimed()));
        let finish = self.machine.finish_report();
        let prepared = self.machine.prepare_report();
        let report = Report {
            ended,
            held: self.held,
            attempts: self.machine.progress().attempt,
            prepare_time: prepared.map(|report| report.prepare_time),
            suspended_time: finish.and_then(|report| report.suspended_time),
            lasted: self.now.saturating_duration_since(self.started),
            requests: self.cluster.requests(),
            strikes: self.cluster.strikes().clone(),
            standstill: self
                .ledger
                .standstill(&self.machine, self.setup.config.window)
                .filter(|_| ended == Ended::Finished),
            retried: self.retried,
            hash: self.trace.hash(),
            violations: self.violations,
            setup: self.setup,
        };
        (report, self.teller)
    }
}

/// A run that the machine refuses to begin.
fn refused(setup: Setup, kind: ErrorKind) -> Report {
    Report {
        setup,
        ended: Ended::Failed(kind),
        held: false,
        attempts: 0,
        prepare_time: None,
        suspended_time: None,
        lasted: Duration::ZERO,
        requests: 0,
        strikes: Default::default(),
        standstill: None,
        retried: false,
        hash: 0,
        violations: vec![Violation::new("configuration", "the machine refuses it")],
    }
}
