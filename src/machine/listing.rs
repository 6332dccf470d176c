use std::collections::BTreeMap;

use super::call::Call;
use super::core::Core;
use super::normal::Normalizer;
use super::session::Session;
use super::timer::{Timer, Timers};
use super::{Effect, RequestId};
use crate::region::{Claim, StoreId};
use crate::time::Timestamp;

/// The listings of the stores' claims: at most one at a time per store, and no
/// more than half of the time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Listings(BTreeMap<StoreId, Listing>);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Listing {
    call: Call,
    /// What came so far and has to be compared when the listing is complete.
    claims: Vec<Claim>,
    /// A listing with this number or a later one is wanted.
    wanted: Option<RequestId>,
    /// The number of the last complete listing.
    completed: Option<RequestId>,
    /// A new one rests as long as the last one took.
    not_before: Option<Timestamp>,
}

impl Listing {
    fn is_wanted(&self) -> bool {
        self.wanted
            .is_some_and(|mark| self.completed.is_none_or(|number| number < mark))
    }
}

impl Listings {
    /// Wants a listing of `store` with the number `mark` or a later one.
    pub(super) fn want(&mut self, store: StoreId, mark: RequestId) {
        let listing = self.0.entry(store).or_default();
        listing.wanted = listing.wanted.max(Some(mark));
    }

    /// Returns whether a listing of `store` with the number `mark` or a later
    /// one is complete.
    pub(super) fn is_complete_since(&self, store: StoreId, mark: RequestId) -> bool {
        self.0
            .get(&store)
            .and_then(|listing| listing.completed)
            .is_some_and(|number| number >= mark)
    }

    /// Starts what is wanted and may start; `at_once` waives the rest between
    /// two listings.
    pub(super) fn start(&mut self, core: &mut Core, session: &Session, at_once: bool) {
        for (id, listing) in &mut self.0 {
            let Some(book) = session.stores.get(id) else {
                continue;
            };
            let rests = !at_once && listing.not_before.is_some_and(|at| at > core.now);
            if !listing.is_wanted() || !listing.call.is_idle() || rests {
                continue;
            }
            listing.claims.clear();
            let request = listing.call.start(core);
            core.emit(Effect::ListClaims {
                request,
                store: book.store.clone(),
            });
        }
    }

    /// Takes in a part of a listing. Returns the store, and all the claims once
    /// they are complete; `None` when the listing is not under way.
    pub(super) fn add(
        &mut self,
        core: &mut Core,
        request: RequestId,
        claims: Vec<Claim>,
        done: bool,
    ) -> Option<(StoreId, Option<Vec<Claim>>)> {
        let (id, listing) = self
            .0
            .iter_mut()
            .find(|(_, listing)| listing.call.is(request))?;
        listing.call.note_progress(core.now);
        if listing.claims.is_empty() {
            listing.claims = claims;
        } else {
            listing.claims.extend(claims);
        }
        if !done {
            return Some((*id, None));
        }
        let took = listing
            .call
            .sent()
            .map(|sent| core.now.saturating_duration_since(sent));
        listing.not_before = took.map(|took| core.now + took);
        listing.call.finish();
        listing.completed = Some(request);
        Some((*id, Some(std::mem::take(&mut listing.claims))))
    }

    /// Notes that a listing failed: it is repeated after a backoff.
    pub(super) fn fail(&mut self, core: &mut Core, request: RequestId) {
        if let Some(listing) = self.0.values_mut().find(|listing| listing.call.is(request)) {
            listing.claims.clear();
            listing.call.fail(core);
        }
    }

    /// Returns the store of a listing that is under way.
    pub(super) fn store_of(&self, request: RequestId) -> Option<StoreId> {
        self.0
            .iter()
            .find(|(_, listing)| listing.call.is(request))
            .map(|(id, _)| *id)
    }

    /// Lets time pass. Returns the listings that are overdue, for `fail`.
    pub(super) fn expire(&mut self, core: &mut Core) -> Vec<RequestId> {
        let mut overdue = Vec::new();
        for listing in self.0.values_mut() {
            if listing.call.is_due(core.now) {
                listing.call.rest();
            }
            if listing.call.is_overdue(core.now, core.config.call_timeout) {
                overdue.extend(listing.call.request());
            }
        }
        overdue
    }

    pub(super) fn timers(&self, core: &Core, timers: &mut Timers) {
        for (id, listing) in &self.0 {
            timers.add_some(
                listing.call.deadline(core.config.call_timeout),
                Timer::Listing(*id),
            );
            if listing.is_wanted() && listing.call.is_idle() {
                timers.add_some(listing.not_before, Timer::Listing(*id));
            }
        }
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        for listing in self.0.values_mut() {
            if !listing.is_wanted() {
                listing.wanted = None;
            }
            let Listing {
                call,
                claims: _,
                wanted,
                completed,
                not_before,
            } = listing;
            call.normalize(to);
            if not_before.is_some_and(|at| to.is_over(at)) {
                *not_before = None;
            }
            if let Some(mark) = wanted {
                to.mark(mark);
            }
            if let Some(number) = completed {
                to.past(number);
            }
            if let Some(at) = not_before {
                to.instant(at);
            }
        }
    }

    /// Returns the stores whose listing is wanted and not there yet.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = StoreId> + '_ {
        self.0
            .iter()
            .filter(|(_, listing)| listing.is_wanted())
            .map(|(id, _)| *id)
    }
}
