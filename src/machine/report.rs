//! What a run says about itself.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Outcome;
use super::asking::{Asking, SLOWEST_MAX};
use super::core::Core;
use super::phase::Phase;
use super::release::Release;
use super::session::Session;
use super::verify::Verify;
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::progress::{FinishReport, PrepareReport, Progress, ReleaseState};
use crate::region::StoreId;

/// How many stores or regions are named at most.
pub(super) const SAMPLE: usize = 5;

pub(super) fn progress(core: &Core, phase: &Phase) -> Progress {
    let mut progress = Progress {
        phase: phase.name(),
        attempt: core.attempt,
        ignored_answers: core.ignored,
        ..Progress::default()
    };
    match phase {
        Phase::Connect(connect) => {
            (progress.stores, progress.stores_open) = connect.store_count();
            progress.regions = connect.region_count();
        }
        Phase::Release(release) => progress.stores = release.store_count(),
        _ => {}
    }
    if let Some(session) = phase.session() {
        progress.stores = session.stores.len();
        progress.stores_open = session.stores.len();
        progress.stores_leased = session
            .stores
            .values()
            .filter(|book| book.lease.is_acknowledged())
            .count();
    }
    if let Some(asking) = phase.asking() {
        progress.regions = Some(asking.region_count());
        progress.regions_confirmed = asking.confirmed;
        progress.in_flight = asking.in_flight();
        progress.retrying = asking.retry.active();
    }
    if let (Phase::Hold { .. }, Some(report)) = (phase, &core.prepared) {
        progress.regions = Some(report.regions);
        progress.regions_confirmed = report.regions;
    }
    progress
}

pub(super) fn waiting_for(core: &Core, phase: &Phase, limit: usize) -> String {
    match phase {
        Phase::Connect(connect) => connect.waiting_for(core, limit),
        Phase::Suspend { session, .. } => {
            let stores: Vec<_> = session
                .stores
                .values()
                .filter(|book| !book.lease.is_acknowledged())
                .map(|book| format!("store {} at {}", book.store.id, book.store.address))
                .collect();
            format!(
                "the first lease of {} stores: {}",
                stores.len(),
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

fn asking_text(core: &Core, asking: &Asking, limit: usize) -> String {
    let mut text = format!(
        "{} of {} regions proven, {} in flight, {} key ranges being retried",
        asking.confirmed,
        asking.region_count(),
        asking.in_flight(),
        asking.retry.active()
    );
    let causes: Vec<_> = asking
        .retry
        .iter()
        .filter(|entry| entry.is_active())
        .take(limit)
        .map(|entry| format!("{} (attempt {})", entry.cause, entry.setbacks.tries))
        .collect();
    if !causes.is_empty() {
        text.push_str("; ");
        text.push_str(&causes.join("; "));
    }
    let waits: Vec<_> = asking
        .shelves
        .iter()
        .filter(|(_, shelf)| shelf.waits > 0)
        .map(|(id, shelf)| format!("store {id}: {} waits", shelf.waits))
        .collect();
    if !waits.is_empty() {
        text.push_str("; unanswered at ");
        text.push_str(&sample(&waits, limit));
    }
    let listings: Vec<_> = asking
        .listings
        .outstanding()
        .map(|id| format!("store {id}"))
        .collect();
    if !listings.is_empty() {
        text.push_str("; waiting for the listing of ");
        text.push_str(&sample(&listings, limit));
    }
    if let Some(failure) = &core.pd_failure {
        text.push_str(&format!("; PD: {failure}"));
    }
    text
}

fn sample(names: &[String], limit: usize) -> String {
    let shown = names.len().min(limit);
    let mut text = names[..shown].join(", ");
    if names.len() > shown {
        text.push_str(", …");
    }
    text
}

/// Returns the error for a hold that did not begin in time.
pub(super) fn deadline_error(core: &Core, phase: &Phase) -> Error {
    let timeout = core.config.prepare_timeout;
    if let Phase::Connect(connect) = phase {
        let failed = core.store_failures.iter().next();
        let missing = connect.first_missing(core);
        let (kind, store_id, failure) = match (missing, failed) {
            (Some(store), _) => {
                let failure = core
                    .store_failures
                    .get(&store.id)
                    .map(|(_, failure)| failure.clone());
                (ErrorKind::Unreachable, Some(store.id), failure)
            }
            (None, _) if core.pd_failure.is_some() => {
                (ErrorKind::Unreachable, None, core.pd_failure.clone())
            }
            (None, _) => (ErrorKind::PrepareTimeout, None, None),
        };
        let mut error = Error::new(
            kind,
            format!(
                "no hold within {timeout:?}: still waiting for {}",
                connect.waiting_for(core, SAMPLE)
            ),
        );
        if let Some(id) = store_id {
            error = error.with_store(id);
        }
        if let Some(failure) = failure {
            error = error.with_source(failure);
        }
        return error;
    }
    let mut error = Error::new(
        ErrorKind::PrepareTimeout,
        format!(
            "no hold within {timeout:?}: still waiting in phase {} for {}",
            phase.name(),
            waiting_for(core, phase, SAMPLE)
        ),
    );
    let stuck = phase
        .asking()
        .and_then(|asking| asking.retry.iter().find(|entry| entry.is_active()));
    if let Some(entry) = stuck {
        error = error.with_key_range(entry.range.clone());
        if let Some((region, store)) = entry.known.first() {
            error = error.with_region(region);
            if let Some(store) = store {
                error = error.with_store(store);
            }
        }
    }
    error
}

/// Returns the error for doubt that leaves no time for another attempt.
pub(super) fn no_time_left(core: &Core, cause: &Error) -> Error {
    let mut error = Error::new(
        ErrorKind::PrepareTimeout,
        format!(
            "no hold within {:?} after {} attempts; the last one ended because of {cause}",
            core.config.prepare_timeout, core.attempt
        ),
    )
    .with_source(Failure::new(FailureKind::Other, cause.message()));
    if let Some(id) = cause.store_id() {
        error = error.with_store(id);
    }
    if let Some(id) = cause.region_id() {
        error = error.with_region(id);
    }
    error
}

pub(super) fn prepare_report(
    core: &Core,
    session: &Session,
    asking: &Asking,
    verify: &Verify,
) -> PrepareReport {
    let suspended_at = core.suspended_at.unwrap_or(core.now);
    let mut slowest_stores: Vec<(StoreId, Duration)> = asking
        .shelves
        .iter()
        .filter_map(|(id, shelf)| {
            let last = shelf.last_proof?;
            Some((*id, last.saturating_duration_since(suspended_at)))
        })
        .collect();
    slowest_stores.sort_by_key(|(id, took)| (std::cmp::Reverse(*took), *id));
    slowest_stores.truncate(SLOWEST_MAX);
    PrepareReport {
        stores: session
            .stores
            .values()
            .map(|book| (book.store.id, book.store.address.clone()))
            .collect(),
        regions: verify.verified(),
        proof: core.config.proof.as_str(),
        attempt: core.attempt,
        foreign_leases: core.foreign.iter().copied().collect(),
        prepare_time: core.now.saturating_duration_since(core.started_at),
        suspended_at,
        held_at: core.now,
        valid_until: session.trusted_until(core).unwrap_or(core.now),
        slowest_regions: asking.slowest.clone(),
        slowest_stores,
        phases: core.phase_times(),
        work: core.work,
    }
}

pub(super) fn finish_report(core: &Core, release: &Release, outcome: &Outcome) -> FinishReport {
    let mut stores: BTreeMap<StoreId, ReleaseState> = core
        .leftovers
        .iter()
        .filter(|(_, until)| **until > core.now)
        .map(|(id, until)| (*id, ReleaseState::Unknown { until: *until }))
        .collect();
    stores.extend(release.states());
    FinishReport {
        stores: stores.into_iter().collect(),
        prepare_time: core.prepared.as_ref().map(|report| report.prepare_time),
        suspended_time: core.suspended_at.map(|from| {
            release
                .last_answer()
                .unwrap_or(core.now)
                .saturating_duration_since(from)
        }),
        closed_at: core.now,
        error: outcome.error().cloned(),
    }
}
