//! Wild events: any event, with any number, in any phase, at any time.

use std::time::Duration;

use super::answer::How;
use super::moves::Move;
use super::run::Run;
use super::world::Asked;
use crate::machine::Event;

/// The most effects that one wild input may lead to.
const EFFECTS_MAX: usize = 400;

/// One input.
#[derive(Clone, Debug)]
pub enum Input {
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
    settle(run)
}

/// Drains the machine and checks what holds whatever came in.
fn settle(run: &mut Run) -> Result<(), String> {
    let (now, before) = (run.now, run.effects.len());
    while let Some(effect) = run.machine.poll_effect() {
        run.world.take(&effect);
        run.effects.push(effect);
    }
    let notices: Vec<_> = std::iter::from_fn(|| run.machine.poll_notice()).collect();
    run.note_phases(&notices, before);
    let effects = run.effects.len() - before;
    if effects > EFFECTS_MAX {
        return Err(format!("{effects} effects of one input (R7)"));
    }
    run.machine.check_invariants()?;
    match (run.machine.poll_timeout(), run.machine.outcome()) {
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
            return settle(run);
        }
        _ => return Ok(()),
    };
    wild_event(run, event, 0)
}

/// Hands in one input after the other.
///
/// # Errors
/// What the machine did that it must not.
pub fn follow_wild(inputs: &[Input], run: &mut Run) -> Result<(), String> {
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
