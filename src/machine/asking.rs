use std::collections::BTreeMap;
use std::time::Duration;

use super::call::Call;
use super::core::{Core, Stop, store_error};
use super::entry::{Entry, EntryState, Setbacks};
use super::follow_up::{FollowUp, Haste};
use super::listing::Listings;
use super::policy::Place;
use super::reads::Reads;
use super::retry::RetryBook;
use super::session::Session;
use super::shelf::{Shelf, Shelves, Slot, TaskState, Tiling, sweep};
use super::straggler::Stragglers;
use super::{Proof, RequestId};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::range::{KeyRange, KeyRangeSet};
use crate::region::{RegionError, RegionErrorKind, RegionId, Store, StoreId};

/// The longest delay that a busy store can ask for.
const BUSY_MAX: Duration = Duration::from_secs(60);

/// What is known of the regions in this attempt, and what is proven.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Asking {
    pub(super) shelves: Shelves,
    /// The union of the proven ranges (rule R12).
    pub(super) proven: KeyRangeSet,
    pub(super) retry: RetryBook,
    pub(super) listings: Listings,
    pub(super) reads: Reads,
    pub(super) stragglers: Stragglers,
    /// The pause after the last round of Verify that found a difference.
    pub(super) round_pause: Duration,
    /// Regions proven now.
    pub(super) confirmed: u64,
    /// Numbers from here on came after the last proof.
    pub(super) last_proof: Option<RequestId>,
    /// The list of stores that is wanted or under way.
    pub(super) store_list: Call,
    pub(super) store_list_wanted: Option<RequestId>,
    pub(super) store_list_completed: Option<RequestId>,
    /// The slowest proofs so far, slowest first.
    pub(super) slowest: Vec<(RegionId, StoreId, Duration)>,
}

impl Asking {
    pub(super) fn new(shelves: BTreeMap<StoreId, Shelf>) -> Self {
        Self {
            shelves: Shelves::new(shelves),
            ..Self::default()
        }
    }

    /// Begins to ask, now that every store is leased.
    pub(super) fn start(&mut self, core: &mut Core) {
        let target = core.config.target.clone();
        if core.config.proof == Proof::Claims {
            // The claims gathered before the leases prove nothing here.
            self.fail(
                core,
                &target,
                "not looked at yet",
                FollowUp::new(Haste::AtOnce),
            );
            return;
        }
        for shelf in self.shelves.values_mut() {
            shelf.make_all_ready();
        }
        let mut claimed = Tiling::new(target);
        for (_, shelf, slot) in sweep(&self.shelves) {
            claimed.add(&shelf.range(slot));
        }
        // What was not claimed before all leases were in force may be now.
        for gap in claimed.into_gaps() {
            self.fail(
                core,
                &gap,
                "no store claims to lead it",
                FollowUp::new(Haste::AtOnce),
            );
        }
    }

    /// Notes a failed attempt for a range (rules R9 to R11): what of it is not
    /// proven is looked at anew after a backoff.
    pub(super) fn fail(
        &mut self,
        core: &mut Core,
        range: &KeyRange,
        cause: &str,
        follow_up: FollowUp,
    ) {
        let Some(range) = range.intersection(&core.config.target) else {
            return;
        };
        self.retry.note_failed(&range, follow_up, core.now);
        for part in self.proven.gaps(&range).collect::<Vec<_>>() {
            let (pieces, setbacks) = self.retry.claim(&part);
            for piece in pieces {
                self.arm(core, piece, setbacks, cause, follow_up);
            }
        }
    }

    fn arm(
        &mut self,
        core: &mut Core,
        range: KeyRange,
        before: Setbacks,
        cause: &str,
        follow_up: FollowUp,
    ) {
        let pause = match follow_up.haste {
            Haste::AtOnce if before.tries == 0 => Duration::ZERO,
            Haste::AtOnce | Haste::Soon => core.longer_pause(before.pause, true),
            Haste::Backoff => core.longer_pause(before.pause, false),
        };
        let wait = core.spread(pause);
        let due = core.now + wait.max(follow_up.at_least);
        let is_due = due <= core.now;
        let state = if is_due {
            EntryState::Queued { mark: core.mark() }
        } else {
            EntryState::Armed { due }
        };
        let failed = follow_up.failed.filter(|_| !is_due);
        self.retry.insert(Entry {
            setbacks: Setbacks {
                tries: before.tries.saturating_add(1),
                pause,
            },
            suspects: follow_up.store.into_iter().collect(),
            failed: failed.into_iter().collect(),
            cause: cause.to_owned(),
            known: follow_up.known(&range),
            ..Entry::new(range, state)
        });
    }

    /// Notes that a region's attempt at a store failed; the region leaves the
    /// shelf, since the next look tells what is there now.
    fn task_failed(
        &mut self,
        core: &mut Core,
        store: StoreId,
        id: RegionId,
        cause: &str,
        follow_up: FollowUp,
    ) {
        let removed = self
            .shelves
            .get_mut(store)
            .and_then(|shelf| shelf.remove(id));
        if let Some((task, range)) = removed {
            let text = format!("region {id} at store {store}: {cause}");
            let follow_up = FollowUp {
                failed: Some((store, id, task.epoch)),
                ..follow_up
            };
            if task.claimed {
                self.fail(core, &range, &text, follow_up);
            } else {
                // A listing told before that it is gone, and others are asked.
                self.fail_gone(core, &range, &text, follow_up);
            }
        }
    }

    /// Takes in the answer for one region of a `WaitApply` (rule R6).
    pub(super) fn handle_wait(
        &mut self,
        core: &mut Core,
        store: &Store,
        target: Option<(RegionId, crate::region::RegionEpoch)>,
        result: Result<(), RegionError>,
    ) {
        let Some(shelf) = self.shelves.get_mut(store.id) else {
            core.ignore();
            return;
        };
        let Some((id, epoch)) = target.or_else(|| nameless(shelf)) else {
            core.stop(Stop::Retry(broken_answer(store)));
            return;
        };
        if target.is_some() && shelf.settle_orphan(id, core.now) {
            core.ignore();
            return;
        }
        let waiting = shelf.next_wait(id);
        let Some(task) = waiting.filter(|task| task.state == TaskState::Waiting) else {
            core.ignore();
            return;
        };
        shelf.end_wait(task.slot);
        core.note_move();
        if target.is_none() || epoch != task.epoch {
            self.task_failed(
                core,
                store.id,
                id,
                "the answer names no region, or another epoch of it",
                FollowUp::at(store.id, Haste::AtOnce),
            );
            return;
        }
        match result {
            Ok(()) => self.wait_confirmed(core, store.id, task.slot),
            Err(error) => self.refused(core, store, id, &error),
        }
    }

    fn wait_confirmed(&mut self, core: &mut Core, store: StoreId, slot: Slot) {
        let Some(shelf) = self.shelves.get_mut(store) else {
            return;
        };
        if shelf.is_covered(slot, &self.proven) {
            shelf.make_idle(slot);
            return;
        }
        match core.config.proof {
            Proof::Read => shelf.make_confirmed(slot),
            Proof::Claims => self.prove(core, store, slot),
        }
    }

    /// Takes in the answer to a leader read (rule R13).
    pub(super) fn handle_read(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        answer: &crate::region::ReadAnswer,
    ) {
        let id = answer.region_id;
        let Some(store_id) = self
            .reads
            .store_of(request)
            .filter(|_| self.reads.has(request, id))
        else {
            core.ignore();
            return;
        };
        // Nothing waits for the answer any more, even if the region has changed
        // since and the answer is of no use.
        if let Some((size, took)) = self.reads.end_one(request, id, core.now)
            && let Some(shelf) = self.shelves.get_mut(store_id)
        {
            shelf.pace.note_half(size, took, core.config.window);
        }
        core.note_move();
        let task = self
            .shelves
            .get_mut(store_id)
            .and_then(|shelf| {
                shelf
                    .next_read(id)
                    .filter(|task| shelf.read_of(task.slot) == Some(request))
            })
            .filter(|task| task.epoch == answer.epoch);
        let Some(task) = task else {
            core.ignore();
            return;
        };
        match &answer.result {
            Ok(()) => {
                if let Some(shelf) = self.shelves.get_mut(store_id) {
                    shelf.end_read(task.slot);
                }
                self.prove(core, store_id, task.slot);
            }
            Err(error) => {
                if let Some(book) = session.stores.get(&store_id) {
                    self.refused(core, &book.store, id, error);
                }
            }
        }
    }

    /// Takes in a proof.
    fn prove(&mut self, core: &mut Core, store: StoreId, slot: Slot) {
        let Some(shelf) = self.shelves.get_mut(store) else {
            return;
        };
        let Some(task) = shelf.task(slot) else {
            return;
        };
        if shelf.is_covered(slot, &self.proven) {
            // Another store proved it first; this one stays a mere claim.
            shelf.make_idle(slot);
            return;
        }
        let range = shelf.range(slot);
        let first_asked = shelf.first_asked(slot).unwrap_or(core.now);
        let took = core.now.saturating_duration_since(first_asked);
        shelf.make_proven(slot, core.now);
        self.proven.insert(&range);
        self.retry.note_progress(&range, &self.proven);
        self.confirmed += 1;
        self.last_proof = Some(core.mark());
        note_slowest(&mut self.slowest, (task.id, store, took));
    }

    /// A store said no to a wait or a read.
    fn refused(&mut self, core: &mut Core, store: &Store, id: RegionId, error: &RegionError) {
        let follow_up = match error.kind {
            RegionErrorKind::EpochNotMatch
            | RegionErrorKind::RegionNotFound
            | RegionErrorKind::NotLeader => FollowUp::at(store.id, Haste::AtOnce),
            RegionErrorKind::ServerIsBusy { backoff } if !backoff.is_zero() => FollowUp {
                at_least: backoff.min(BUSY_MAX),
                ..FollowUp::at(store.id, Haste::Soon)
            },
            RegionErrorKind::NotReady => FollowUp::at(store.id, Haste::Soon),
            RegionErrorKind::Unsupported => {
                let failure = Failure::new(FailureKind::Unsupported, error.message.clone());
                core.judge(store, &failure, Place::Call);
                return;
            }
            RegionErrorKind::ServerIsBusy { .. }
            | RegionErrorKind::StaleCommand
            | RegionErrorKind::Duplicated
            | RegionErrorKind::WrongPeer
            | RegionErrorKind::Unserved
            | RegionErrorKind::Other => FollowUp::at(store.id, Haste::Backoff),
        };
        self.task_failed(core, store.id, id, &error.message, follow_up);
    }

    /// A batch of reads failed, or was left unanswered: what it had not
    /// answered counts as refused.
    pub(super) fn reads_failed(&mut self, core: &mut Core, request: RequestId, cause: &str) {
        let Some(batch) = self.reads.take(request) else {
            return;
        };
        if batch.left.len() == batch.size as usize
            && let Some(shelf) = self.shelves.get_mut(batch.store_id)
        {
            shelf.pace.note_silence(batch.size, core.config.window);
        }
        for id in batch.left {
            let is_reading = self.shelves.get(&batch.store_id).is_some_and(|shelf| {
                let task = shelf.get(id);
                task.is_some_and(|task| shelf.read_of(task.slot) == Some(request))
            });
            if is_reading {
                let follow_up = FollowUp::at(batch.store_id, Haste::Backoff);
                self.task_failed(core, batch.store_id, id, cause, follow_up);
            }
        }
    }

    /// Takes in the failure of a call.
    pub(super) fn handle_failed(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        failure: &Failure,
    ) {
        if self.store_list.is(request) {
            self.store_list_failed(core, failure);
        } else if let Some(store) = self.reads.store_of(request) {
            let book = session.stores.get(&store);
            if book.is_some_and(|book| core.judge(&book.store, failure, Place::Call)) {
                self.reads_failed(core, request, &failure.message);
            }
        } else if let Some(store) = self.listings.store_of(request) {
            if let Some(book) = session.stores.get(&store) {
                self.listing_failed(core, &book.store, request, failure);
            }
        } else {
            self.scan_failed(core, request, failure);
        }
    }

    /// Returns whether everything is proven.
    pub(super) fn is_complete(&self, core: &Core) -> bool {
        self.proven.covers(&core.config.target)
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight_up_to(u64::MAX)
    }

    /// Returns what is in flight, but counts no further than it has to.
    pub(super) fn in_flight_up_to(&self, enough: u64) -> u64 {
        let mut found = 0;
        for shelf in self.shelves.values() {
            if found >= enough {
                break;
            }
            found += u64::from(shelf.waits) + u64::from(shelf.reads);
        }
        found
    }

    pub(super) fn region_count(&self) -> u64 {
        self.shelves.values().map(|shelf| shelf.len() as u64).sum()
    }
}

/// Returns the region that an answer without a region can only be for.
fn nameless(shelf: &Shelf) -> Option<(RegionId, crate::region::RegionEpoch)> {
    shelf.only_wait().map(|task| (task.id, task.epoch))
}

fn broken_answer(store: &Store) -> Error {
    let failure = Failure::new(FailureKind::Malformed, "an answer without a region");
    store_error(
        ErrorKind::StreamLost,
        store,
        "it answered a wait without naming the region",
        &failure,
    )
}

/// How many of the slowest are kept for the report.
pub(super) const SLOWEST_MAX: usize = 5;

fn note_slowest(
    slowest: &mut Vec<(RegionId, StoreId, Duration)>,
    entry: (RegionId, StoreId, Duration),
) {
    let at = slowest.partition_point(|other| other.2 >= entry.2);
    if at < SLOWEST_MAX {
        slowest.insert(at, entry);
        slowest.truncate(SLOWEST_MAX);
    }
}
