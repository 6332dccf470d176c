use std::collections::BTreeMap;

use super::asking::Asking;
use super::connect::wrong_store;
use super::core::{Core, Stop};
use super::follow_up::{FollowUp, Haste};
use super::session::Session;
use super::shelf::{Slot, TaskState};
use super::{Proof, RequestId};
use crate::range::{KeyRange, KeyRangeSet};
use crate::region::{Claim, PeerId, Region, RegionId, StoreId};

/// Taking in what the stores claim. Claims of regions that are known just so are
/// ticked off as they come; the others are kept until the listing is complete,
/// since only a complete listing says anything.
impl Asking {
    /// Lists all claims once more while the leases are given out. Those of the
    /// probe are as old as the streams took to open; what changed since would be
    /// found out by a refusal only, with everybody suspended.
    pub(super) fn begin_refresh(&mut self, core: &mut Core, session: &Session) {
        if core.config.proof != Proof::Read {
            return;
        }
        let mark = core.mark();
        for store in session.stores.keys() {
            self.listings.want(*store, mark);
        }
        self.listings.start(core, session, true);
    }

    /// Takes in a part of such a listing. Nobody may be asked yet (rule R2), so
    /// it only brings the books up to date.
    pub(super) fn refresh(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        claims: Vec<Claim>,
        done: bool,
    ) {
        let Some(store_id) = self.take_part(core, session, request, claims, done) else {
            return;
        };
        for claim in self.close_listing(core, store_id, request).1 {
            self.apply_claim(session, store_id, &claim);
        }
        if let Some(shelf) = self.shelves.get_mut(store_id) {
            for gone in shelf.unlisted() {
                shelf.remove(gone.id);
            }
            shelf.tidy();
        }
    }

    /// Notes that the listing of a store is complete. Returns the regions that
    /// are claimed for the first time, and the claims that are not known just so.
    fn close_listing(
        &mut self,
        core: &Core,
        store_id: StoreId,
        request: RequestId,
    ) -> (Vec<Slot>, Vec<Claim>) {
        let (kept, has_stranger) = self.listings.complete(core, store_id);
        if has_stranger {
            self.store_list_wanted = Some(core.mark());
        }
        let news = self.shelves.of(store_id).end_listing(request);
        // Of a region that was named twice the last word counts.
        let kept: BTreeMap<RegionId, Claim> = kept
            .into_iter()
            .map(|claim| (claim.region.id, claim))
            .collect();
        (news, kept.into_values().collect())
    }

    /// Takes in a part of a listing. Returns the store if it was the last one.
    pub(super) fn take_part(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        claims: Vec<Claim>,
        done: bool,
    ) -> Option<StoreId> {
        let Some(store_id) = self.listings.note_part(core, request) else {
            core.ignore();
            return None;
        };
        self.take_claims(core, session, store_id, claims);
        if !done || core.is_stopping() {
            return None;
        }
        core.store_failures.remove(&store_id);
        Some(store_id)
    }

    /// Takes in the claims of a part of the listing of a store.
    fn take_claims(
        &mut self,
        core: &mut Core,
        session: &Session,
        store_id: StoreId,
        claims: Vec<Claim>,
    ) {
        let Some(book) = session.stores.get(&store_id) else {
            return;
        };
        let shelf = self.shelves.of(store_id);
        for claim in claims {
            let Some(peer) = claim.region.peer_on(store_id) else {
                core.stop(Stop::Fail(wrong_store(&book.store, &claim.region)));
                return;
            };
            let peer_id = peer.id;
            if !claim.region.range.overlaps(&core.config.target) {
                continue;
            }
            let stranger = stranger(session, &claim.region);
            if let Some(stranger) = stranger {
                let id = claim.region.id;
                self.listings.note_stranger(store_id, id, stranger);
            }
            let is_clean = !claim.has_pending_admin && stranger.is_none();
            if self.listings.keeps(store_id, claim.region.id)
                || !shelf.list(&claim, peer_id, is_clean)
            {
                self.listings.keep(store_id, claim);
            }
        }
    }

    /// Takes in that the listing of a store is complete.
    pub(super) fn end_listing(
        &mut self,
        core: &mut Core,
        session: &Session,
        store_id: StoreId,
        request: RequestId,
    ) {
        let (mut news, kept) = self.close_listing(core, store_id, request);
        let mut replaced = Vec::new();
        for claim in &kept {
            if let Some((slot, before)) = self.apply_claim(session, store_id, claim) {
                news.push(slot);
                replaced.extend(before);
            }
        }
        self.ask_news(core, store_id, news);
        let look = FollowUp::new(Haste::AtOnce);
        for before in replaced {
            self.fail_gone(core, &before, "the region has changed", look);
        }
        self.drop_unclaimed(core, store_id);
        if let Some(shelf) = self.shelves.get_mut(store_id) {
            shelf.tidy();
        }
    }

    /// Lets regions that are new on their shelf be asked, in key order, unless
    /// that very thing failed and its backoff runs.
    fn ask_news(&mut self, core: &mut Core, store_id: StoreId, mut news: Vec<Slot>) {
        let Some(shelf) = self.shelves.get_mut(store_id) else {
            return;
        };
        if core.config.proof != Proof::Read {
            return;
        }
        news.sort_unstable_by(|one, other| shelf.place(*one).cmp(&shelf.place(*other)));
        for slot in news {
            let Some(task) = shelf.task(slot) else {
                continue;
            };
            let range = shelf.range(slot);
            let asked = (store_id, task.id, task.epoch);
            if !self.proven.covers(&range) && !self.retry.is_resting(&range, &asked) {
                shelf.make_ready(slot, core.now);
                core.note_move();
            }
        }
    }

    /// Puts a claim of a complete listing on the shelf. Returns the slot of a
    /// region that is new or has changed, with the range that it had.
    fn apply_claim(
        &mut self,
        session: &Session,
        store_id: StoreId,
        claim: &Claim,
    ) -> Option<(Slot, Option<KeyRange>)> {
        let peer_id = claim
            .region
            .peer_on(store_id)
            .map_or(PeerId(0), |peer| peer.id);
        let is_clean = !claim.has_pending_admin && stranger(session, &claim.region).is_none();
        let shelf = self.shelves.of(store_id);
        if let Some(slot) = shelf.matching(claim) {
            shelf.claim(slot, peer_id, is_clean);
            return None;
        }
        let replaced = shelf.remove(claim.region.id);
        let slot = shelf.put(claim, peer_id);
        shelf.claim(slot, peer_id, is_clean);
        let before = replaced.map(|(task, range)| {
            if task.state == TaskState::Proven {
                self.confirmed = self.confirmed.saturating_sub(1);
            }
            range
        });
        Some((slot, before))
    }

    /// A range that was asked for as something that is no more has failed, unless
    /// somebody else is asked for it.
    pub(super) fn fail_gone(
        &mut self,
        core: &mut Core,
        range: &KeyRange,
        cause: &str,
        follow_up: FollowUp,
    ) {
        let mut left = KeyRangeSet::new();
        left.insert(range);
        for served in self.live_within(range).iter() {
            left.remove(&served);
        }
        for rest in left.iter().collect::<Vec<_>>() {
            self.fail(core, &rest, cause, follow_up);
        }
    }

    /// Returns what is asked, or about to be, of the regions that overlap
    /// `range`.
    pub(super) fn live_within(&self, range: &KeyRange) -> KeyRangeSet {
        let mut live = KeyRangeSet::new();
        for shelf in self.shelves.values() {
            for task in shelf.overlapping(range) {
                if task.is_live() {
                    live.insert(&shelf.range(task.slot));
                }
            }
        }
        live
    }

    /// Drops what the store claims no more, save what is in flight or proven.
    fn drop_unclaimed(&mut self, core: &mut Core, store_id: StoreId) {
        let Some(shelf) = self.shelves.get_mut(store_id) else {
            return;
        };
        for gone in shelf.unlisted() {
            let in_flight = matches!(gone.state, TaskState::Waiting | TaskState::Reading);
            if !in_flight && let Some(shelf) = self.shelves.get_mut(store_id) {
                shelf.remove(gone.id);
            }
            if gone.state != TaskState::Idle {
                let text = format!(
                    "region {} is no longer claimed by store {store_id}",
                    gone.id
                );
                let follow_up = FollowUp::new(Haste::AtOnce).about(gone.id, store_id);
                self.fail_gone(core, &gone.range, &text, follow_up);
            }
        }
    }
}

/// Returns a store that takes no part though a voter of the region is on it.
fn stranger(session: &Session, region: &Region) -> Option<StoreId> {
    let mut voters = region.peers.iter().filter(|peer| peer.role.is_voter());
    voters
        .find(|peer| !session.stores.contains_key(&peer.store_id))
        .map(|peer| peer.store_id)
}
