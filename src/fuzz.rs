//! The bodies of the fuzz targets, as ordinary functions, so that the committed
//! corpora are replayed by a plain test too. Not part of the interface.

use std::collections::VecDeque;
use std::time::Duration;

use arbitrary::{Result, Unstructured};

use crate::machine::{Config, Effect, Event, Machine};
use crate::range::{EndKey, Key, KeyRange, KeyRangeSet};
use crate::time::Timestamp;

/// The most effects that one input may lead to: an event carries few things.
const EFFECTS_MAX: usize = 10_000;
/// The most inputs of one run.
const INPUTS_MAX: usize = 2_000;

/// Changes a set at random and compares it with a row of 256 booleans.
///
/// # Errors
/// The bytes are used up in the middle of a value.
///
/// # Panics
/// The set is wrong.
pub fn range_set(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    let mut set = KeyRangeSet::new();
    let mut model = [false; 256];
    while !u.is_empty() {
        let insert: bool = u.arbitrary()?;
        let from: u8 = u.arbitrary()?;
        let to: u8 = u.arbitrary()?;
        // The keys are `[0]` to `[255]` and what follows them; 255 as an end
        // means unbounded, so that the end of all keys is met.
        let Some(range) = byte_range(from, to) else {
            continue;
        };
        let last = if to == 255 { 255 } else { to - 1 };
        if insert {
            set.insert(&range);
        } else {
            set.remove(&range);
        }
        model[usize::from(from)..=usize::from(last)].fill(insert);
        check_set(&set, &model);
    }
    Ok(())
}

fn byte_range(from: u8, to: u8) -> Option<KeyRange> {
    let end = match to {
        255 => EndKey::Unbounded,
        byte => EndKey::Bounded(Key::from(&[byte])),
    };
    KeyRange::new(Key::from(&[from]), end)
}

fn check_set(set: &KeyRangeSet, model: &[bool; 256]) {
    let mut ends: Option<EndKey> = None;
    for range in set.iter() {
        let touches = ends
            .as_ref()
            .is_some_and(|end| !matches!(end, EndKey::Bounded(end) if end < range.start()));
        assert!(!touches, "two ranges of the set touch");
        ends = Some(range.end().clone());
    }
    for byte in 0..=255_u8 {
        let key = Key::from(&[byte]);
        let covered = set.iter().any(|range| range.contains_key(&key));
        assert_eq!(covered, model[usize::from(byte)], "key {byte:#04x}");
    }
}

/// Runs a machine on events made from bytes and checks its invariants.
///
/// # Errors
/// The bytes are used up in the middle of a value.
///
/// # Panics
/// The machine breaks an invariant.
pub fn machine(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    let config: Config = u.arbitrary()?;
    let mut now = Timestamp::from_micros(u.arbitrary::<u32>()?.into());
    let Ok(mut machine) = Machine::new(config, now) else {
        unreachable!("only what is valid is made");
    };
    let mut asked = VecDeque::new();
    drain(&mut machine, now, &mut asked);
    for _ in 0..INPUTS_MAX {
        if u.is_empty() {
            break;
        }
        now = match u.int_in_range(0..=3)? {
            0 => machine.poll_timeout().unwrap_or(now).max(now),
            1 => now + Duration::from_micros(u.arbitrary::<u32>()?.into()),
            _ => now,
        };
        let mut event: Event = u.arbitrary()?;
        if u.arbitrary()? {
            // A number that is really outstanding gets further.
            let which = u.arbitrary::<u8>()?;
            aim(&mut event, which, &asked);
        }
        machine.handle_event(event, now);
        drain(&mut machine, now, &mut asked);
    }
    Ok(())
}

fn drain(machine: &mut Machine, now: Timestamp, asked: &mut VecDeque<Effect>) {
    let mut effects = 0;
    while let Some(effect) = machine.poll_effect() {
        asked.push_back(effect);
        effects += 1;
    }
    while asked.len() > 64 {
        asked.pop_front();
    }
    while machine.poll_notice().is_some() {}
    assert!(effects <= EFFECTS_MAX, "{effects} effects of one input");
    if let Err(broken) = machine.check_invariants() {
        panic!("{broken}");
    }
    match machine.poll_timeout() {
        Some(at) => assert!(at > now, "the deadline {at} is left over at {now}"),
        None => assert!(machine.outcome().is_some(), "no deadline, and not over"),
    }
}

/// Gives the event the number of an effect that it could answer.
fn aim(event: &mut Event, which: u8, asked: &VecDeque<Effect>) {
    let fitting: Vec<_> = asked
        .iter()
        .filter_map(|effect| match (&event, effect) {
            (Event::StoresListed { .. }, Effect::ListStores { request })
            | (Event::RegionsClaimed { .. }, Effect::ListClaims { request, .. })
            | (Event::LeaderReadDone { .. }, Effect::LeaderRead { request, .. })
            | (Event::RegionsScanned { .. }, Effect::ScanRegions { request, .. })
            | (Event::LeaseUpdated { .. }, Effect::UpdateLease { request, .. })
            | (Event::LeaseUpdated { .. }, Effect::Finish { request, .. }) => Some(*request),
            (
                Event::StreamOpened { .. }
                | Event::StreamEnded { .. }
                | Event::WaitApplyDone { .. },
                Effect::OpenStream { stream, .. },
            ) => Some(*stream),
            _ => None,
        })
        .collect();
    let Some(number) = fitting.get(usize::from(which) % fitting.len().max(1)) else {
        return;
    };
    match event {
        Event::StoresListed { request, .. }
        | Event::RegionsClaimed { request, .. }
        | Event::LeaderReadDone { request, .. }
        | Event::RegionsScanned { request, .. }
        | Event::LeaseUpdated { request, .. } => *request = *number,
        Event::StreamOpened { stream }
        | Event::StreamEnded { stream, .. }
        | Event::WaitApplyDone { stream, .. } => *stream = *number,
        _ => {}
    }
}
