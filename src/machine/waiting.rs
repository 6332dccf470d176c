//! What a run is waiting for, in words for people.

use super::asking::Asking;
use super::core::Core;
use super::entry::Entry;
use super::phase::Phase;
use super::session::Session;
use super::shelf::{Shelf, TaskState};
use crate::range::KeyRange;
use crate::region::{RegionId, Store, StoreId};

/// How many stores or regions are named at most.
pub(super) const SAMPLE: usize = 5;

/// The first thing that keeps everything waiting, as far as it is known.
#[derive(Default)]
pub(super) struct Stuck {
    pub(super) store: Option<StoreId>,
    pub(super) region: Option<RegionId>,
    pub(super) range: Option<KeyRange>,
}

/// Returns what the first thing is that is being waited for once streams are
/// open.
pub(super) fn stuck(phase: &Phase) -> Stuck {
    if let Phase::Suspend { session, .. } = phase {
        return Stuck {
            store: unleased(session).next().map(|store| store.id),
            ..Stuck::default()
        };
    }
    let Some(asking) = phase.asking() else {
        return Stuck::default();
    };
    if let Some(entry) = asking.retry.iter().find(|entry| entry.is_active()) {
        let first = entry.known.first();
        return Stuck {
            store: first.and_then(|(_, store)| store),
            region: first.map(|(region, _)| region),
            range: Some(entry.range.clone()),
        };
    }
    for (id, shelf) in asking.shelves.iter() {
        let pending = shelf.iter().find(|task| is_in_flight(task.state));
        if let Some(task) = pending {
            return Stuck {
                store: Some(*id),
                region: Some(task.id),
                range: Some(shelf.range(task.slot)),
            };
        }
    }
    Stuck {
        store: asking.listings.outstanding().next(),
        ..Stuck::default()
    }
}

/// Describes what is being waited for; of everything `limit` are named.
pub(super) fn waiting_for(core: &Core, phase: &Phase, limit: usize) -> String {
    match phase {
        Phase::Connect(connect) => connect.waiting_for(core, limit),
        Phase::Suspend { session, .. } => {
            let stores: Vec<_> = unleased(session)
                .map(|store| format!("store {} at {}", store.id, store.address))
                .collect();
            format!(
                "the first lease of {} of {}: {}",
                stores.len(),
                many(session.stores.len() as u64, "store"),
                sample(&stores, limit)
            )
        }
        Phase::WaitApply { asking, .. } | Phase::Verify { asking, .. } => {
            asking_text(core, asking, limit)
        }
        Phase::Release(release) => release.waiting_for(limit),
        Phase::Hold { .. } => "the end of the hold".to_owned(),
        Phase::Closed(_) => "nothing: the run is over".to_owned(),
    }
}

/// Returns the stores whose first lease is not there yet.
fn unleased(session: &Session) -> impl Iterator<Item = &Store> {
    session
        .stores
        .values()
        .filter(|book| !book.lease.is_acknowledged())
        .map(|book| &book.store)
}

fn asking_text(core: &Core, asking: &Asking, limit: usize) -> String {
    let mut parts = vec![format!(
        "{} of {} known regions proven, {} in flight, {} being retried",
        asking.confirmed,
        asking.region_count(),
        asking.in_flight(),
        many(asking.retry.active(), "key range")
    )];
    let (active, resting): (Vec<_>, Vec<_>) =
        asking.retry.iter().partition(|entry| entry.is_active());
    let setbacks = resting
        .into_iter()
        .map(|entry| format!("last setback: {}", entry_text(entry)));
    let retried = active.into_iter().map(entry_text).chain(setbacks);
    parts.extend(retried.take(limit));
    let silent: Vec<_> = asking
        .shelves
        .iter()
        .filter_map(|(id, shelf)| silent_text(*id, shelf, limit))
        .collect();
    if !silent.is_empty() {
        parts.push(format!("unanswered: {}", sample(&silent, limit)));
    }
    let listings: Vec<_> = asking
        .listings
        .outstanding()
        .map(|id| format!("store {id}"))
        .collect();
    if !listings.is_empty() {
        parts.push(format!(
            "waiting for the listing of {}",
            sample(&listings, limit)
        ));
    }
    if let Some(failure) = &core.pd_failure {
        parts.push(format!("PD: {failure}"));
    }
    parts.join("; ")
}

fn entry_text(entry: &Entry) -> String {
    let times = match entry.setbacks.tries {
        0 | 1 => "once".to_owned(),
        tries => format!("{tries} times"),
    };
    let cause = &entry.cause;
    match entry.known.first() {
        Some(_) => format!("{cause} ({times})"),
        None => format!("keys {}: {cause} ({times})", entry.range),
    }
}

/// Returns which regions a store leaves unanswered.
fn silent_text(id: StoreId, shelf: &Shelf, limit: usize) -> Option<String> {
    let of = |state, what| {
        let regions: Vec<_> = shelf
            .iter()
            .filter(|task| task.state == state)
            .map(|task| task.id.to_string())
            .collect();
        (!regions.is_empty()).then(|| {
            let count = many(regions.len() as u64, what);
            let noun = if regions.len() == 1 {
                "region"
            } else {
                "regions"
            };
            format!("{count} ({noun} {})", sample(&regions, limit))
        })
    };
    let waits = (shelf.waits > 0).then(|| of(TaskState::Waiting, "wait"));
    let reads = (shelf.reads > 0).then(|| of(TaskState::Reading, "read"));
    let both: Vec<_> = [waits, reads].into_iter().flatten().flatten().collect();
    (!both.is_empty()).then(|| format!("{} at store {id}", both.join(" and ")))
}

fn is_in_flight(state: TaskState) -> bool {
    matches!(state, TaskState::Waiting | TaskState::Reading)
}

/// Returns a number with what it counts.
pub(super) fn many(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn sample(names: &[String], limit: usize) -> String {
    let shown = names.len().min(limit);
    let mut text = names[..shown].join(", ");
    if names.len() > shown {
        text.push_str(if shown == 0 { "…" } else { ", …" });
    }
    text
}
