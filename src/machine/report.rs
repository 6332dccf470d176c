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
use super::waiting::{SAMPLE, stuck, waiting_for};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::progress::{FinishReport, PrepareReport, Progress, ReleaseState};
use crate::region::StoreId;

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
    let stuck = stuck(phase);
    if let Some(id) = stuck.store {
        error = error.with_store(id);
    }
    if let Some(id) = stuck.region {
        error = error.with_region(id);
    }
    if let Some(range) = stuck.range {
        error = error.with_key_range(range);
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
