use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use super::core::Core;
use super::normal::Normalizer;
use super::session::Session;
use super::timer::{Timer, Timers};
use super::{Effect, RequestId};
use crate::region::{Claim, RegionId, StoreId};
use crate::time::Timestamp;

/// Of how many regions in a listing it is kept where their strange voters are.
const STRANGERS_MAX: usize = 8;

/// The listings of the stores' claims: at most one at a time per store, and no
/// more than half of the time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Listings {
    by_store: BTreeMap<StoreId, Listing>,
    /// The stores whose listing is wanted or under way; may hold others until
    /// the next start. Most inputs find none.
    busy: BTreeSet<StoreId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Listing {
    call: Call,
    /// What came so far that the store's shelf does not know just so, and the
    /// regions of it.
    kept: Vec<Claim>,
    kept_ids: BTreeSet<RegionId>,
    /// Regions with a voter on a store that takes no part, and that store.
    strangers: BTreeMap<RegionId, StoreId>,
    /// A listing with this number or a later one is wanted.
    wanted: Option<RequestId>,
    /// Likewise, for looks at ranges that failed.
    wanted_for_looks: Option<RequestId>,
    /// The number of the last complete listing.
    completed: Option<RequestId>,
    /// A new one rests as long as the last one took.
    not_before: Option<Timestamp>,
}

impl Listing {
    fn is_wanted(&self) -> bool {
        self.wanted
            .max(self.wanted_for_looks)
            .is_some_and(|mark| self.completed.is_none_or(|number| number < mark))
    }

    fn is_busy(&self) -> bool {
        self.is_wanted() || !self.call.is_idle()
    }

    fn take_kept(&mut self) -> Vec<Claim> {
        self.kept_ids.clear();
        std::mem::take(&mut self.kept)
    }
}

impl Listings {
    /// Wants a listing of `store` with the number `mark` or a later one.
    pub(super) fn want(&mut self, store: StoreId, mark: RequestId) {
        self.busy.insert(store);
        let listing = self.by_store.entry(store).or_default();
        listing.wanted = listing.wanted.max(Some(mark));
    }

    /// Likewise, for looks.
    pub(super) fn want_for_look(&mut self, store: StoreId, mark: RequestId) {
        self.busy.insert(store);
        let listing = self.by_store.entry(store).or_default();
        listing.wanted_for_looks = listing.wanted_for_looks.max(Some(mark));
    }

    /// Wants no listings for looks any more.
    pub(super) fn forget_looks(&mut self) {
        for id in &self.busy {
            if let Some(listing) = self.by_store.get_mut(id) {
                listing.wanted_for_looks = None;
            }
        }
    }

    /// Returns whether a listing of `store` with the number `mark` or a later
    /// one is complete.
    pub(super) fn is_complete_since(&self, store: StoreId, mark: RequestId) -> bool {
        self.by_store
            .get(&store)
            .and_then(|listing| listing.completed)
            .is_some_and(|number| number >= mark)
    }

    /// Starts what is wanted and may start; `at_once` waives the rest between
    /// two listings.
    pub(super) fn start(&mut self, core: &mut Core, session: &Session, at_once: bool) {
        let by_store = &mut self.by_store;
        self.busy.retain(|id| {
            let Some(listing) = by_store.get_mut(id) else {
                return false;
            };
            let rests = !at_once && listing.not_before.is_some_and(|at| at > core.now);
            if listing.is_wanted()
                && listing.call.is_idle()
                && !rests
                && let Some(book) = session.stores.get(id)
            {
                listing.strangers.clear();
                let request = listing.call.start(core);
                core.emit(Effect::ListClaims {
                    request,
                    store: book.store.clone(),
                });
            }
            listing.is_busy()
        });
    }

    /// Notes that a part of a listing came. Returns the store, `None` when the
    /// listing is not under way.
    pub(super) fn note_part(&mut self, core: &Core, request: RequestId) -> Option<StoreId> {
        let (id, listing) = self
            .by_store
            .iter_mut()
            .find(|(_, listing)| listing.call.is(request))?;
        listing.call.note_progress(core.now);
        Some(*id)
    }

    /// Keeps a claim until the listing of its store is complete.
    pub(super) fn keep(&mut self, store: StoreId, claim: Claim) {
        if let Some(listing) = self.by_store.get_mut(&store) {
            listing.kept_ids.insert(claim.region.id);
            listing.kept.push(claim);
        }
    }

    /// Returns whether a claim of that region is kept.
    pub(super) fn keeps(&self, store: StoreId, id: RegionId) -> bool {
        self.by_store
            .get(&store)
            .is_some_and(|listing| listing.kept_ids.contains(&id))
    }

    /// Notes that the listing under way saw a region with a voter on `stranger`,
    /// which takes no part.
    pub(super) fn note_stranger(&mut self, store: StoreId, region: RegionId, stranger: StoreId) {
        if let Some(listing) = self.by_store.get_mut(&store)
            && listing.strangers.len() < STRANGERS_MAX
        {
            listing.strangers.insert(region, stranger);
        }
    }

    /// Describes what is not clean about a claim of the last listing.
    pub(super) fn unclean_text(&self, store: StoreId, region: RegionId) -> String {
        let strangers = self.by_store.get(&store).map(|listing| &listing.strangers);
        match strangers.map(|them| (them.get(&region), them.len())) {
            Some((Some(stranger), _)) => {
                format!("has a voter on store {stranger}, which is not suspended")
            }
            Some((None, STRANGERS_MAX..)) => {
                "has an admin command pending, or a voter on a store that is not suspended"
                    .to_owned()
            }
            _ => "has an admin command pending".to_owned(),
        }
    }

    /// Ends a listing that is complete. Returns the claims that were kept, and
    /// whether it saw a voter on a store that takes no part.
    pub(super) fn complete(&mut self, core: &Core, store: StoreId) -> (Vec<Claim>, bool) {
        let Some(listing) = self.by_store.get_mut(&store) else {
            return (Vec::new(), false);
        };
        let took = listing
            .call
            .sent()
            .map(|sent| core.now.saturating_duration_since(sent));
        listing.not_before = took.map(|took| core.now + took);
        listing.completed = listing.call.request();
        listing.call.finish();
        (listing.take_kept(), !listing.strangers.is_empty())
    }

    /// Notes that a listing failed: it is repeated after a backoff. Returns its
    /// store.
    pub(super) fn fail(&mut self, core: &mut Core, request: RequestId) -> Option<StoreId> {
        let (id, listing) = self
            .by_store
            .iter_mut()
            .find(|(_, listing)| listing.call.is(request))?;
        listing.take_kept();
        listing.strangers.clear();
        listing.call.fail(core);
        Some(*id)
    }

    /// Returns the store of a listing that is under way.
    pub(super) fn store_of(&self, request: RequestId) -> Option<StoreId> {
        self.by_store
            .iter()
            .find(|(_, listing)| listing.call.is(request))
            .map(|(id, _)| *id)
    }

    /// Lets time pass. Returns the listings that are overdue, for `fail`.
    pub(super) fn expire(&mut self, core: &mut Core) -> Vec<RequestId> {
        let mut overdue = Vec::new();
        for id in &self.busy {
            let Some(listing) = self.by_store.get_mut(id) else {
                continue;
            };
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
        let busy = self.busy.iter();
        for (id, listing) in busy.filter_map(|id| Some((id, self.by_store.get(id)?))) {
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
        let by_store = &self.by_store;
        self.busy
            .retain(|id| by_store.get(id).is_some_and(Listing::is_busy));
        for listing in self.by_store.values_mut() {
            let completed = listing.completed;
            for wanted in [&mut listing.wanted, &mut listing.wanted_for_looks] {
                if *wanted <= completed {
                    *wanted = None;
                }
            }
            let Listing {
                call,
                kept: _,
                kept_ids: _,
                strangers,
                wanted,
                wanted_for_looks,
                completed,
                not_before,
            } = listing;
            if call.is_idle() {
                // Only for reports.
                strangers.clear();
            }
            call.normalize(to);
            if not_before.is_some_and(|at| to.is_over(at)) {
                *not_before = None;
            }
            for mark in [wanted, wanted_for_looks].into_iter().flatten() {
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

    #[cfg(feature = "arbitrary")]
    pub(super) fn make_all_busy(&mut self) {
        self.busy.extend(self.by_store.keys());
    }

    /// Checks that no listing is forgotten.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut forgotten = self.by_store.iter();
        match forgotten.find(|(id, listing)| listing.is_busy() && !self.busy.contains(id)) {
            Some((id, _)) => Err(format!("the listing of store {id} is forgotten")),
            None => Ok(()),
        }
    }

    /// Returns the stores whose listing is wanted and not there yet.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = StoreId> + '_ {
        self.by_store
            .iter()
            .filter(|(_, listing)| listing.is_wanted())
            .map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many regions with a voter on a store that takes no part only some are
    /// known; of the others it is not said that they have none.
    #[test]
    fn a_claim_that_is_not_clean_is_told_as_far_as_it_is_known() {
        let (store, stranger) = (StoreId(1), StoreId(9));
        let pending = "has an admin command pending";
        let known = "has a voter on store 9, which is not suspended";
        let told = |regions: u64| {
            let mut listings = Listings::default();
            listings.want(store, RequestId(1));
            for region in 1..=regions {
                listings.note_stranger(store, RegionId(region), stranger);
            }
            (1..=regions + 1)
                .map(|region| listings.unclean_text(store, RegionId(region)))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(0), [pending]);
        assert_eq!(told(7), [vec![known; 7], vec![pending]].concat());
        let either = format!("{pending}, or a voter on a store that is not suspended");
        for regions in [8, 9, 20] {
            let told = told(regions);
            assert!(told[..8].iter().all(|text| text == known), "{regions}");
            assert!(told[8..].iter().all(|text| *text == either), "{regions}");
        }
    }

    #[test]
    fn a_listing_is_wanted_until_one_with_that_number_or_a_later_one_is_complete() {
        for (wanted, completed, is_wanted) in [
            (None, None, false),
            (None, Some(5), false),
            (Some(5), None, true),
            (Some(5), Some(4), true),
            (Some(5), Some(5), false),
            (Some(5), Some(6), false),
        ] {
            let listing = Listing {
                wanted: wanted.map(RequestId),
                completed: completed.map(RequestId),
                ..Listing::default()
            };
            assert_eq!(listing.is_wanted(), is_wanted, "{wanted:?} {completed:?}");
        }
    }
}
