use super::asking::Asking;
use super::core::{Core, Stop};
use super::follow_up::{FollowUp, Haste};
use super::normal::Normalizer;
use super::session::Session;
use super::shelf::{Task, TaskState, Tiling, sweep};
use super::{Proof, RequestId};
use crate::error::{Error, ErrorKind, Failure};
use crate::range::{EndKey, Key, KeyRange, KeyRangeSet};
use crate::region::{RegionId, Store, StoreId};

/// Comparing what was proven with what the stores say now (rule R14), round by
/// round until nothing differs.
///
/// No store's listing can begin before the last proof of all, not even at a store
/// whose own regions are long proven: that *exactly one* store claims a region
/// takes a listing of every store, each begun after that region's proof, so the
/// last proof anywhere binds them all.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Verify {
    /// The round under way: numbers from here on belong to it.
    round: Option<RequestId>,
    /// Rounds that found a difference.
    pub(super) differences: u32,
    /// Regions verified, once a round found no difference.
    verified: Option<u64>,
}

impl Verify {
    /// Moves on as far as possible. Returns whether the hold may begin.
    pub(super) fn step(
        &mut self,
        core: &mut Core,
        session: &mut Session,
        asking: &mut Asking,
    ) -> bool {
        if core.is_stopping() {
            return false;
        }
        if self.verified.is_none() {
            self.step_round(core, session, asking);
        }
        let since_proof = asking.last_proof.unwrap_or(RequestId(u64::MAX));
        self.verified.is_some()
            && asking.is_complete(core)
            && session.all_renewed_since(since_proof)
    }

    fn step_round(&mut self, core: &mut Core, session: &mut Session, asking: &mut Asking) {
        match self.round {
            None => {
                // A read that is still in flight belongs to a second claimer;
                // its refusal is what ends that claim.
                if asking.is_complete(core) && asking.reads.is_empty() {
                    self.begin_round(core, session, asking);
                }
            }
            Some(mark) => {
                let listed = asking
                    .store_list_completed
                    .is_some_and(|number| number >= mark)
                    && session
                        .stores
                        .keys()
                        .all(|store| asking.listings.is_complete_since(*store, mark));
                if listed {
                    self.end_round(core, asking, mark);
                    // What differs may be looked at without a backoff.
                    asking.pump(core, session);
                }
            }
        }
    }

    fn begin_round(&mut self, core: &mut Core, session: &mut Session, asking: &mut Asking) {
        let mark = core.mark();
        self.round = Some(mark);
        session.renew_all(core);
        asking.store_list_wanted = Some(mark);
        for store in session.stores.keys() {
            asking.listings.want(*store, mark);
        }
        asking.listings.start(core, session, true);
        asking.pump_store_list(core);
    }

    fn end_round(&mut self, core: &mut Core, asking: &mut Asking, mark: RequestId) {
        self.round = None;
        let round = asking.compare(core, mark);
        if round.differing.is_empty() {
            self.verified = Some(round.regions);
            return;
        }
        self.differences = self.differences.saturating_add(1);
        asking.uncover(core, &round, self.differences);
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            round,
            differences,
            verified: _,
        } = self;
        *differences = to.tries(*differences);
        if let Some(mark) = round {
            to.mark(mark);
        }
    }

    pub(super) fn verified(&self) -> u64 {
        self.verified.unwrap_or(0)
    }
}

/// What a round of listings shows.
struct Comparison {
    regions: u64,
    differing: KeyRangeSet,
    /// What the first difference is, and of which region at which store.
    cause: String,
    blamed: Option<(KeyRange, StoreId, RegionId)>,
}

impl Comparison {
    fn note(&mut self, range: &KeyRange, cause: impl FnOnce() -> String) {
        if self.differing.is_empty() {
            self.cause = cause();
        }
        self.differing.insert(range);
    }

    /// Notes a difference of one region.
    fn note_region(&mut self, range: KeyRange, at: (StoreId, RegionId), what: String) {
        let (store, region) = at;
        self.note(&range, || {
            format!("region {region} at store {store} {what}")
        });
        self.blamed.get_or_insert((range, store, region));
    }
}

impl Asking {
    /// Compares every claim of the listings with the number `mark` or later
    /// with what is proven.
    fn compare(&self, core: &Core, mark: RequestId) -> Comparison {
        let mut matched = Tiling::new(core.config.target.clone());
        let mut matched_to = EndKey::Bounded(Key::EMPTY);
        let mut round = Comparison {
            regions: 0,
            differing: KeyRangeSet::new(),
            cause: String::new(),
            blamed: None,
        };
        for (store, shelf, slot) in sweep(&self.shelves) {
            let Some(task) = shelf.task(slot).filter(|task| task.claimed) else {
                continue;
            };
            let range = shelf.range(slot);
            let is_clean = task.clean && shelf.listed.is_some_and(|number| number >= mark);
            let what = if !is_clean {
                self.listings.unclean_text(store, task.id)
            } else if matched_to.is_after(range.start()) {
                "is claimed by two stores, or overlaps another one".to_owned()
            } else if !self.is_proven(core, &task, &range) {
                "is not what was proven there".to_owned()
            } else {
                matched.add(&range);
                matched_to = range.end().clone();
                round.regions += 1;
                continue;
            };
            round.note_region(range, (store, task.id), what);
        }
        for gap in matched.into_gaps() {
            round.note(&gap, || "a proven region is claimed by no store".to_owned());
        }
        round
    }

    /// Returns whether this very region is proven, by this store or, when a
    /// read proved it, by another one that led it before.
    fn is_proven(&self, core: &Core, claimed: &Task, range: &KeyRange) -> bool {
        if claimed.state == TaskState::Proven {
            return true;
        }
        core.config.proof == Proof::Read
            && self.shelves.values().any(|shelf| {
                shelf.get(claimed.id).is_some_and(|task| {
                    task.state == TaskState::Proven
                        && task.epoch == claimed.epoch
                        && shelf.range(task.slot) == *range
                })
            })
    }

    /// Takes back what differs, the proven and the claimed ranges, so that it is
    /// asked again after a backoff.
    fn uncover(&mut self, core: &mut Core, round: &Comparison, rounds: u32) {
        let differing = &round.differing;
        let mut uncovered = differing.clone();
        // What is taken back can reach into further proofs.
        while self.take_back(&mut uncovered) {}
        let ranges: Vec<KeyRange> = uncovered.iter().collect();
        for range in &ranges {
            self.proven.remove(range);
        }
        // The first difference is looked into at once, further ones after a
        // pause that grows with the rounds.
        let follow_up = if rounds > 1 {
            self.round_pause = core.longer_pause(self.round_pause, true);
            FollowUp {
                at_least: core.spread(self.round_pause),
                ..FollowUp::new(Haste::Soon)
            }
        } else {
            FollowUp::new(Haste::AtOnce)
        };
        for range in ranges {
            let follow_up = match &round.blamed {
                Some((at, store, region)) if range.overlaps(at) => follow_up.about(*region, *store),
                _ => follow_up,
            };
            self.fail(core, &range, &round.cause, follow_up);
        }
    }

    /// Takes back the proofs that overlap `uncovered`, which grows by their
    /// ranges. Returns whether there were any.
    fn take_back(&mut self, uncovered: &mut KeyRangeSet) -> bool {
        let mut any = false;
        for shelf in self.shelves.values_mut() {
            for slot in shelf.proven_slots() {
                let range = shelf.range(slot);
                if uncovered.overlaps(&range) {
                    shelf.make_idle(slot);
                    uncovered.insert(&range);
                    self.confirmed = self.confirmed.saturating_sub(1);
                    any = true;
                }
            }
        }
        any
    }

    /// Takes in a list of the stores. A TiKV store that is new since was never
    /// leased, so the attempt is worth nothing.
    pub(super) fn handle_stores(
        &mut self,
        core: &mut Core,
        session: &mut Session,
        request: RequestId,
        stores: &[Store],
    ) {
        if !self.store_list.is(request) {
            core.ignore();
            return;
        }
        self.store_list.finish();
        self.store_list_completed = Some(request);
        core.note_move();
        core.pd_failure = None;
        session.update_addresses(stores);
        let new = stores.iter().find(|store| {
            store.takes_part() && !store.id.is_none() && !session.stores.contains_key(&store.id)
        });
        if let Some(store) = new {
            core.stop(Stop::Retry(
                Error::new(
                    ErrorKind::LeaseLost,
                    format!(
                        "store {} at {} joined the cluster and is not suspended",
                        store.id, store.address
                    ),
                )
                .with_store(store.id),
            ));
        }
    }

    pub(super) fn store_list_failed(&mut self, core: &mut Core, failure: &Failure) {
        if core.judge_pd(failure) {
            self.store_list.fail(core);
        }
    }
}
