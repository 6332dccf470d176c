//! The normal form, in which a model checker knows a machine again.

use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::fuzz::play::{Asked, How, Run, World};
use snapshot_prepare::machine::{Config, Effect, Event, Machine, RequestId, Timer};
use snapshot_prepare::time::Timestamp;

use super::plan::plan;
use super::runner::check;

const REGRESSIONS: &str = "tests/machine_properties/regressions/normal.txt";
/// Longer than any plan takes, so that nothing is out of sight.
const HORIZON: Duration = Duration::from_secs(100 * 24 * 3600);
const SECOND: Duration = Duration::from_secs(1);

/// A machine that is brought into normal form after every input does what the
/// one does that never is: the same effects, at the same distances in time,
/// under other numbers. So no more is forgotten than may be.
#[test]
fn a_machine_in_normal_form_goes_on_as_before() {
    let name = "a_machine_in_normal_form_goes_on_as_before";
    check(name, REGRESSIONS, 256, &plan(), |plan| {
        let mut run = Run::normal(plan.config.clone(), plan.world(), HORIZON)?;
        for step in &plan.moves {
            run.step(step)?;
        }
        run.run_to_hold()?;
        for step in &plan.in_hold {
            run.step(step)?;
        }
        run.run_out()?;
        let mut shadow = Shadow::new(plan.config.clone())?;
        shadow.compare(&run.effects[..run.inputs.first().map_or(0, |first| first.2)])?;
        for (index, (event, at, from)) in run.inputs.iter().enumerate() {
            let next = run.inputs.get(index + 1);
            let to = next.map_or(run.effects.len(), |next| next.2);
            let following = run.effects.get(*from..to).unwrap_or_default();
            let result = shadow.input(event.as_ref(), *at, following);
            result.map_err(|what| {
                let last = &run.inputs[index.saturating_sub(8)..=index];
                format!("after input {index}: {what}\nthe last inputs: {last:#?}")
            })?;
        }
        if shadow.machine.outcome().is_some() == run.is_over() {
            Ok(())
        } else {
            Err(run.explain("one is over, the other is not"))
        }
    });
}

/// Follows a run with a machine that is always in normal form.
struct Shadow {
    machine: Machine,
    /// The same inputs for a machine that is left alone.
    plain: Machine,
    /// From the numbers of the plain machine to those of this one.
    numbers: BTreeMap<RequestId, RequestId>,
    /// The time that the plain machine was told last.
    told: Timestamp,
}

impl Shadow {
    fn new(config: Config) -> Result<Self, String> {
        let mut machine =
            Machine::new(config, Timestamp::ZERO).map_err(|error| error.to_string())?;
        machine.normalize(HORIZON, []);
        Ok(Self {
            plain: machine.clone(),
            machine,
            numbers: BTreeMap::new(),
            told: Machine::NORMAL_NOW,
        })
    }

    fn input(
        &mut self,
        event: Option<&Event>,
        at: Timestamp,
        following: &[Effect],
    ) -> Result<(), String> {
        let since = at.saturating_duration_since(self.told);
        self.told = at;
        let now = Machine::NORMAL_NOW + since;
        match event {
            Some(event) => {
                self.machine.handle_event(self.renamed(event), now);
                self.plain.handle_event(event.clone(), at);
            }
            None => {
                self.machine.handle_timeout(now);
                self.plain.handle_timeout(at);
            }
        }
        self.compare(following)?;
        let renaming = self
            .machine
            .normalize(HORIZON, self.numbers.values().copied());
        for number in self.numbers.values_mut() {
            *number = renaming.number(*number).ok_or("a number got lost")?;
        }
        self.check_deadline(at)?;
        self.machine.check_invariants()
    }

    fn check_deadline(&self, at: Timestamp) -> Result<(), String> {
        if self.machine.phase() != self.plain.phase() {
            return Err("the phases differ".to_owned());
        }
        let distance = |machine: &Machine, now: Timestamp| {
            let (at, timer) = machine.next_timer()?;
            Some((at.saturating_duration_since(now), timer))
        };
        let plain = distance(&self.plain, at);
        let normal = distance(&self.machine, Machine::NORMAL_NOW);
        match (plain, normal) {
            // What is told when all is quiet is forgotten, and so are waits that
            // were answered before their deadline.
            (Some((_, Timer::Quiet | Timer::Ask(_))), _) | (_, Some((_, Timer::Quiet))) => Ok(()),
            (plain, normal) if plain.map(|it| it.0) == normal.map(|it| it.0) => Ok(()),
            (plain, normal) => Err(format!("the deadlines differ: {plain:?}, {normal:?}")),
        }
    }

    /// Compares the effects with those of the plain machine.
    fn compare(&mut self, following: &[Effect]) -> Result<(), String> {
        while self.plain.poll_effect().is_some() {}
        for effect in following {
            let Some(own) = self.machine.poll_effect() else {
                return Err(format!("{effect:?} is missing"));
            };
            for (theirs, own) in numbers(effect).into_iter().zip(numbers(&own)) {
                self.numbers.entry(theirs).or_insert(own);
            }
            if self.renamed_effect(effect) != own {
                return Err(format!("{effect:?} became {own:?}"));
            }
        }
        match self.machine.poll_effect() {
            None => Ok(()),
            Some(effect) => Err(format!("{effect:?} comes in addition")),
        }
    }

    fn number(&self, number: RequestId) -> RequestId {
        let unknown = RequestId(u64::MAX / 2);
        self.numbers.get(&number).copied().unwrap_or(unknown)
    }

    fn renamed(&self, event: &Event) -> Event {
        let mut event = event.clone();
        match &mut event {
            Event::StoresListed { request, .. }
            | Event::LeaseUpdated { request, .. }
            | Event::RegionsClaimed { request, .. }
            | Event::LeaderReadDone { request, .. }
            | Event::RegionsScanned { request, .. }
            | Event::RequestFailed { request, .. } => *request = self.number(*request),
            Event::StreamOpened { stream }
            | Event::StreamEnded { stream, .. }
            | Event::WaitApplyDone { stream, .. } => *stream = self.number(*stream),
            _ => {}
        }
        event
    }

    fn renamed_effect(&self, effect: &Effect) -> Effect {
        let mut effect = effect.clone();
        match &mut effect {
            Effect::ListStores { request }
            | Effect::ListClaims { request, .. }
            | Effect::LeaderRead { request, .. }
            | Effect::ScanRegions { request, .. } => *request = self.number(*request),
            Effect::UpdateLease {
                request, stream, ..
            }
            | Effect::Finish {
                request, stream, ..
            } => {
                *request = self.number(*request);
                *stream = self.number(*stream);
            }
            Effect::OpenStream { stream, .. }
            | Effect::WaitApply { stream, .. }
            | Effect::CloseStream { stream, .. } => *stream = self.number(*stream),
            _ => {}
        }
        effect
    }
}

fn numbers(effect: &Effect) -> Vec<RequestId> {
    match effect {
        Effect::ListStores { request }
        | Effect::ListClaims { request, .. }
        | Effect::LeaderRead { request, .. }
        | Effect::ScanRegions { request, .. } => vec![*request],
        Effect::UpdateLease {
            request, stream, ..
        }
        | Effect::Finish {
            request, stream, ..
        } => vec![*request, *stream],
        Effect::OpenStream { stream, .. }
        | Effect::WaitApply { stream, .. }
        | Effect::CloseStream { stream, .. } => vec![*stream],
        _ => Vec::new(),
    }
}

/// Drives a machine as far as its leases, all answered at once but for the
/// given pauses.
fn leased(start: Timestamp, pauses: [Duration; 2], noise: u64) -> Machine {
    let mut now = start;
    let mut machine = Machine::new(Config::default(), now).expect("a machine");
    let mut world = World::new(2, 2);
    let mut later = Vec::new();
    for _ in 0..40 {
        for number in 0..noise {
            let stray = Event::StreamOpened {
                stream: RequestId(1_000_000 + number),
            };
            machine.handle_event(stray, now);
        }
        while let Some(effect) = machine.poll_effect() {
            world.take(&effect);
        }
        if world.outstanding.is_empty() {
            now = now + Config::default().settle;
            machine.handle_timeout(now);
        }
        for asked in std::mem::take(&mut world.outstanding) {
            let is_lease = matches!(asked, Asked::Lease { .. });
            let event = world.answer(&asked, &How::Well, now);
            if is_lease {
                later.push(event);
            } else {
                machine.handle_event(event, now);
            }
        }
        if later.len() == 2 {
            break;
        }
    }
    for (event, pause) in later.into_iter().zip(pauses) {
        now = now + pause;
        machine.handle_event(event, now);
    }
    while machine.poll_effect().is_some() {}
    machine
}

fn normal(mut machine: Machine) -> Machine {
    machine.normalize(HORIZON, []);
    machine
}

#[test]
fn what_does_not_matter_is_left_out() {
    let pauses = [SECOND, SECOND];
    let one = leased(Timestamp::from_micros(5), pauses, 0);
    let other = leased(Timestamp::from_micros(77_000_000_000), pauses, 3);
    assert_ne!(one, other);
    assert_eq!(normal(one), normal(other));
}

#[test]
fn what_matters_is_kept() {
    let start = Timestamp::from_micros(5);
    let one = leased(start, [SECOND, SECOND], 0);
    // The leases are older, so the renewals are due earlier.
    let older = leased(start, [SECOND, 2 * SECOND], 0);
    assert_ne!(normal(one.clone()), normal(older));
    // A store failed.
    let mut failed = one.clone();
    failed.handle_event(
        Event::StreamEnded {
            stream: RequestId(4),
            reason: Failure::new(FailureKind::Transport, "gone"),
        },
        Timestamp::ZERO,
    );
    assert_ne!(normal(one), normal(failed));
}

#[test]
fn the_normal_form_of_a_normal_form_is_itself() {
    let once = normal(leased(Timestamp::from_micros(5), [SECOND, SECOND], 1));
    assert_eq!(once, normal(once.clone()));
}

#[test]
fn numbers_of_the_caller_are_renamed_as_well() {
    let mut machine = leased(Timestamp::from_micros(5), [SECOND, SECOND], 0);
    let stale = [RequestId(900), RequestId(800)];
    let renaming = machine.normalize(HORIZON, stale);
    let new: Vec<_> = stale.iter().map(|old| renaming.number(*old)).collect();
    assert!(
        new[0] < new[1] && new[0].is_some(),
        "in the caller's order: {new:?}"
    );
    assert_eq!(renaming.number(RequestId(700)), None);
    let instant = renaming.instant(Timestamp::from_micros(5) + SECOND);
    assert!(instant <= Machine::NORMAL_NOW);
}
