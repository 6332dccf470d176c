//! Totality: any event, with any number, in any phase, at any time.

use std::time::Duration;

use proptest::prelude::*;
use snapshot_prepare::error::Failure;
use snapshot_prepare::machine::{Event, Machine, RequestId};
use snapshot_prepare::range::{EndKey, Key, KeyRange};
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionError, RegionId,
    ScannedRegion, Store, StoreId, StoreState, WaitAnswer, WaitTarget,
};
use snapshot_prepare::time::Timestamp;

use super::answer::How;
use super::plan::{Move, failure_kind, plan, region_error, step};
use super::run::Run;
use super::runner::check;
use super::world::Asked;

const REGRESSIONS: &str = "tests/machine_properties/regressions/wild.txt";
/// The most effects that one wild input may lead to.
const EFFECTS_MAX: usize = 400;

/// One input.
#[derive(Clone, Debug)]
enum Input {
    /// A move of the tiny cluster, which brings the machine into later phases.
    Move(Move),
    /// An event out of the blue. With `aim` its number is that of something
    /// outstanding, so that it is taken in.
    Event {
        event: Event,
        aim: Option<u8>,
        /// How far the clock is set before the event; backwards if negative.
        millis: i64,
    },
}

/// Small numbers are met often, large ones at the edge.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..6_u64, 6 => 0..40_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn key() -> impl Strategy<Value = Key> {
    prop::collection::vec(
        prop_oneof![Just(0_u8), Just(64), Just(128), Just(192), Just(255)],
        0..3,
    )
    .prop_map(Key::new)
}

fn key_range() -> impl Strategy<Value = KeyRange> {
    let end = prop_oneof![2 => key().prop_map(EndKey::Bounded), 1 => Just(EndKey::Unbounded)];
    (key(), end).prop_map(|(start, end)| KeyRange::new(start, end).unwrap_or(KeyRange::whole()))
}

fn store() -> impl Strategy<Value = Store> {
    let state = prop_oneof![
        4 => Just(StoreState::Up),
        1 => Just(StoreState::Offline),
        1 => Just(StoreState::Tombstone),
    ];
    (0..6_u64, state, prop::bool::weighted(0.1)).prop_map(|(id, state, tiflash)| {
        let labels = tiflash.then(|| ("engine".to_owned(), "tiflash".to_owned()));
        Store {
            id: StoreId(id),
            address: format!("elsewhere-{id}"),
            state,
            labels: labels.into_iter().collect(),
            ..Store::default()
        }
    })
}

fn epoch() -> impl Strategy<Value = RegionEpoch> {
    (number(), number()).prop_map(|(conf_ver, version)| RegionEpoch { conf_ver, version })
}

fn region() -> impl Strategy<Value = Region> {
    let role = prop_oneof![
        4 => Just(PeerRole::Voter),
        1 => Just(PeerRole::Learner),
        1 => Just(PeerRole::IncomingVoter),
    ];
    let peer = (number(), 0..5_u64, role).prop_map(|(id, store, role)| Peer {
        id: PeerId(id),
        store_id: StoreId(store),
        role,
    });
    (
        number(),
        key_range(),
        epoch(),
        prop::collection::vec(peer, 0..4),
    )
        .prop_map(|(id, range, epoch, peers)| Region {
            id: RegionId(id),
            range,
            epoch,
            peers,
        })
}

fn result() -> impl Strategy<Value = Result<(), RegionError>> {
    prop_oneof![
        3 => Just(Ok(())),
        1 => region_error().prop_map(|kind| Err(RegionError::new(kind, "no"))),
    ]
}

fn request() -> impl Strategy<Value = RequestId> {
    number().prop_map(RequestId)
}

fn failed() -> impl Strategy<Value = Failure> {
    failure_kind().prop_map(|kind| Failure::new(kind, "wild"))
}

fn answers() -> impl Strategy<Value = Event> {
    let target = (number(), epoch()).prop_map(|(id, epoch)| WaitTarget {
        region_id: RegionId(id),
        epoch,
    });
    let wait = (prop::option::weighted(0.9, target), result())
        .prop_map(|(target, result)| WaitAnswer { target, result });
    let read = (number(), epoch(), result()).prop_map(|(id, epoch, result)| ReadAnswer {
        region_id: RegionId(id),
        epoch,
        result,
    });
    prop_oneof![
        (request(), prop::collection::vec(wait, 0..5))
            .prop_map(|(stream, answers)| Event::WaitApplyDone { stream, answers }),
        (request(), prop::collection::vec(read, 0..5))
            .prop_map(|(request, answers)| Event::LeaderReadDone { request, answers }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let claim = (region(), any::<bool>()).prop_map(|(region, has_pending_admin)| Claim {
        region,
        has_pending_admin,
    });
    let scanned = (region(), prop::option::of((0..6_u64).prop_map(StoreId)))
        .prop_map(|(region, leader)| ScannedRegion { region, leader });
    prop_oneof![
        2 => (request(), prop::collection::vec(store(), 0..5))
            .prop_map(|(request, stores)| Event::StoresListed { request, stores }),
        2 => request().prop_map(|stream| Event::StreamOpened { stream }),
        1 => (request(), failed())
            .prop_map(|(stream, reason)| Event::StreamEnded { stream, reason }),
        3 => (request(), any::<bool>()).prop_map(|(request, last_lease_is_valid)| {
            Event::LeaseUpdated { request, last_lease_is_valid }
        }),
        4 => (request(), prop::collection::vec(claim, 0..5), any::<bool>())
            .prop_map(|(request, claims, done)| Event::RegionsClaimed { request, claims, done }),
        6 => answers(),
        3 => (request(), prop::collection::vec(scanned, 0..5))
            .prop_map(|(request, regions)| Event::RegionsScanned { request, regions }),
        2 => (request(), failed())
            .prop_map(|(request, failure)| Event::RequestFailed { request, failure }),
        1 => Just(Event::FinishRequested),
        1 => prop_oneof![Just(Event::CancelRequested), Just(Event::LockLost)],
    ]
}

fn input() -> impl Strategy<Value = Input> {
    let millis = prop_oneof![
        6 => Just(0_i64),
        3 => 0..400_i64,
        2 => -5_000..30_000_i64,
        1 => 0..4_000_000_i64,
    ];
    prop_oneof![
        1 => step().prop_map(Input::Move),
        1 => (event(), prop::option::weighted(0.7, any::<u8>()), millis)
            .prop_map(|(event, aim, millis)| Input::Event { event, aim, millis }),
    ]
}

/// Gives an event the number of the `which`th outstanding thing that it could
/// answer, and for waits and reads the region that was asked.
fn aim(event: &mut Event, which: u8, outstanding: &[Asked]) {
    let fitting: Vec<_> = outstanding
        .iter()
        .filter(|asked| {
            matches!(
                (&event, asked),
                (Event::StoresListed { .. }, Asked::List { .. })
                    | (Event::StreamOpened { .. }, Asked::Open { .. })
                    | (
                        Event::LeaseUpdated { .. },
                        Asked::Lease { .. } | Asked::Finish { .. }
                    )
                    | (Event::RegionsClaimed { .. }, Asked::Claims { .. })
                    | (Event::WaitApplyDone { .. }, Asked::Wait { .. })
                    | (Event::LeaderReadDone { .. }, Asked::Read { .. })
                    | (Event::RegionsScanned { .. }, Asked::Scan { .. })
                    | (
                        Event::StreamEnded { .. },
                        Asked::Lease { .. } | Asked::Wait { .. }
                    )
                    | (
                        Event::RequestFailed { .. },
                        Asked::List { .. }
                            | Asked::Claims { .. }
                            | Asked::Read { .. }
                            | Asked::Scan { .. }
                    )
            )
        })
        .collect();
    let Some(asked) = fitting.get(usize::from(which) % fitting.len().max(1)) else {
        return;
    };
    match event {
        Event::StoresListed { request, .. }
        | Event::RegionsClaimed { request, .. }
        | Event::RegionsScanned { request, .. }
        | Event::RequestFailed { request, .. }
        | Event::LeaseUpdated { request, .. } => {
            *request = match asked {
                Asked::List { request }
                | Asked::Claims { request, .. }
                | Asked::Read { request, .. }
                | Asked::Scan { request, .. }
                | Asked::Lease { request, .. }
                | Asked::Finish { request, .. } => *request,
                _ => *request,
            };
        }
        Event::StreamOpened { stream } | Event::StreamEnded { stream, .. } => {
            *stream = asked.stream().unwrap_or(*stream);
        }
        Event::WaitApplyDone { stream, answers } => {
            if let Asked::Wait {
                stream: id, target, ..
            } = asked
            {
                *stream = *id;
                if let Some(answer) = answers.first_mut() {
                    answer.target = Some(*target);
                }
            }
        }
        Event::LeaderReadDone { request, answers } => {
            if let Asked::Read {
                request: id,
                target,
                ..
            } = asked
            {
                *request = *id;
                if let Some(answer) = answers.first_mut() {
                    answer.region_id = target.region_id;
                    answer.epoch = target.epoch;
                }
            }
        }
        _ => {}
    }
}

/// A machine that takes wild events, with the cluster to aim at.
fn wild_event(run: &mut Run, event: Event, millis: i64) -> Result<(), String> {
    let step = Duration::from_millis(millis.unsigned_abs());
    let now = if millis < 0 {
        run.now.saturating_sub(step)
    } else {
        run.now + step
    };
    run.now = run.now.max(now);
    run.machine.handle_event(event, now);
    settle(&mut run.machine, run.now, |effect| run.world.take(effect))
}

/// Drains the machine and checks what holds whatever came in.
fn settle(
    machine: &mut Machine,
    now: Timestamp,
    mut take: impl FnMut(&snapshot_prepare::machine::Effect),
) -> Result<(), String> {
    let mut effects = 0;
    while let Some(effect) = machine.poll_effect() {
        take(&effect);
        effects += 1;
    }
    while machine.poll_notice().is_some() {}
    if effects > EFFECTS_MAX {
        return Err(format!("{effects} effects of one input (R7)"));
    }
    machine.check_invariants()?;
    match (machine.poll_timeout(), machine.outcome()) {
        (Some(at), None) if at > now => Ok(()),
        (None, Some(_)) => Ok(()),
        (at, outcome) => Err(format!(
            "at {now} the next deadline is {at:?}, the outcome {outcome:?}"
        )),
    }
}

fn wild_move(run: &mut Run, step: &Move) -> Result<(), String> {
    let event = match step {
        Move::Answer(which, how) => {
            let len = run.world.outstanding.len();
            if len == 0 {
                return Ok(());
            }
            let asked = run.world.outstanding.remove(usize::from(*which) % len);
            run.world.answer(&asked, how, run.now)
        }
        Move::AnswerAll => {
            for _ in 0..run.world.outstanding.len() {
                if run.world.outstanding.is_empty() {
                    break;
                }
                let asked = run.world.outstanding.remove(0);
                let event = run.world.answer(&asked, &How::Well, run.now);
                wild_event(run, event, 0)?;
            }
            return Ok(());
        }
        Move::Change(change) => {
            run.world.change(change);
            return Ok(());
        }
        Move::NextDeadline => {
            run.now = run.machine.poll_timeout().unwrap_or(run.now).max(run.now);
            run.machine.handle_timeout(run.now);
            return settle(&mut run.machine, run.now, |effect| run.world.take(effect));
        }
        _ => return Ok(()),
    };
    wild_event(run, event, 0)
}

fn follow(inputs: &[Input], run: &mut Run) -> Result<(), String> {
    for input in inputs {
        match input {
            Input::Move(step) => wild_move(run, step)?,
            Input::Event {
                event,
                aim: which,
                millis,
            } => {
                let mut event = event.clone();
                if let Some(which) = which {
                    aim(&mut event, *which, &run.world.outstanding);
                }
                wild_event(run, event, *millis)?;
            }
        }
    }
    Ok(())
}

/// Nothing makes the machine panic, spin, flood, or break an invariant.
#[test]
fn any_event_is_accepted_in_any_phase() {
    let strategy = (plan(), prop::collection::vec(input(), 0..60));
    check(
        "any_event_is_accepted_in_any_phase",
        REGRESSIONS,
        512,
        &strategy,
        |(plan, inputs)| {
            let mut run = Run::new(plan.config.clone(), plan.world())?;
            follow(inputs, &mut run)
        },
    );
}
