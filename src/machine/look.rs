use std::collections::{BTreeMap, BTreeSet};

use super::asking::Asking;
use super::core::Core;
use super::entry::{Entry, EntryState};
use super::follow_up::{FollowUp, Haste};
use super::policy::Place;
use super::session::Session;
use super::shelf::{Task, TaskState};
use super::timer::{Timer, Timers};
use super::{Effect, Proof, RequestId};
use crate::error::Failure;
use crate::range::{EndKey, Key, KeyRange, KeyRangeSet};
use crate::region::{Claim, RegionId, ScannedRegion, Store, StoreId};

/// The most scans of PD under way at once.
const SCANS_MAX: usize = 8;

/// Looking at a failed range anew (rule R11): PD says who leads it, the named
/// stores say what they claim there, and whoever claims it is asked.
impl Asking {
    /// Moves ranges whose backoff is over to the queue, and gives up scans that
    /// are overdue.
    pub(super) fn expire_looks(&mut self, core: &mut Core) {
        let mark = core.mark();
        for start in self.retry.due(core.now) {
            self.retry.queue(&start, mark);
        }
        let latest = core.now;
        let timeout = core.config.call_timeout;
        let overdue: Vec<Key> = self
            .retry
            .scanning()
            .filter(|entry| {
                matches!(entry.state, EntryState::Scanning { sent, .. } if sent + timeout <= latest)
            })
            .map(|entry| entry.range.start().clone())
            .collect();
        for start in &overdue {
            self.list_all(start);
        }
        for request in self.listings.expire(core) {
            self.fail_listing(core, request);
        }
        self.finish_those(core, overdue);
    }

    pub(super) fn look_timers(&self, core: &Core, timers: &mut Timers) {
        for entry in self.retry.scanning() {
            if let EntryState::Scanning { request, sent, .. } = entry.state {
                timers.add(sent + core.config.call_timeout, Timer::Scan(request));
            }
        }
    }

    /// Starts as many scans as may be under way.
    pub(super) fn run_queue(&mut self, core: &mut Core) {
        self.retry.join_queued();
        let mut scanning = self.retry.scans();
        // Each takes at least one scan, so there is no use for more.
        for start in self.retry.queued(SCANS_MAX.saturating_sub(scanning)) {
            if scanning >= SCANS_MAX {
                return;
            }
            let Some(entry) = self.retry.remove(&start) else {
                continue;
            };
            let EntryState::Queued { mark } = entry.state else {
                continue;
            };
            for part in self.proven.gaps(&entry.range).collect::<Vec<_>>() {
                let state = if scanning < SCANS_MAX {
                    scanning += 1;
                    // These will be asked whatever PD says.
                    for store in &entry.suspects {
                        self.listings.want_for_look(*store, mark);
                    }
                    scan(core, &part, mark)
                } else {
                    EntryState::Queued { mark }
                };
                self.retry.insert(Entry {
                    range: part,
                    state,
                    ..entry.clone()
                });
            }
        }
    }

    /// Takes in PD's page for a range under look.
    pub(super) fn handle_scan(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        regions: &[ScannedRegion],
    ) {
        let Some(start) = self.retry.scanned_by(request) else {
            core.ignore();
            return;
        };
        core.pd_failure = None;
        self.cut_at_page_end(core.config.page_size, &start, regions);
        self.retry.note_scanned(&start, regions);
        let Some(entry) = self.retry.get(&start) else {
            return;
        };
        let mut told = KeyRangeSet::new();
        let mut stores: BTreeSet<_> = entry
            .suspects
            .iter()
            .copied()
            .filter(|id| session.stores.contains_key(id))
            .collect();
        let mut named = BTreeMap::new();
        let mut stranger = false;
        for scanned in regions
            .iter()
            .filter(|scanned| scanned.region.range.overlaps(&entry.range))
        {
            if let Some(leader) = scanned.leader {
                if session.stores.contains_key(&leader) {
                    stores.insert(leader);
                    named.insert(scanned.region.id, leader);
                    told.insert(&scanned.region.range);
                } else {
                    stranger = true;
                }
            }
        }
        // PD can be wrong for long: after a second failure its word is not enough.
        let doubtful = entry.setbacks.tries > 2 || !told.covers(&entry.range);
        if doubtful || core.config.proof == Proof::Claims {
            stores.extend(session.stores.keys().copied());
        }
        if stranger {
            self.store_list_wanted = Some(core.mark());
        }
        if self.is_asked_anew(core, entry) {
            let entry = entry.at_rest(entry.range.clone());
            self.retry.remove(&start);
            self.retry.insert(entry);
            return;
        }
        self.begin_listing(&start, stores, named);
        self.finish_those(core, vec![start]);
    }

    /// Returns whether a listing has brought since PD was asked whom to ask
    /// for all of the range, so that no further one is needed.
    fn is_asked_anew(&self, core: &Core, entry: &Entry) -> bool {
        let EntryState::Scanning { sent, .. } = entry.state else {
            return false;
        };
        if core.config.proof != Proof::Read || entry.is_stale {
            return false;
        }
        let mut left = KeyRangeSet::new();
        left.insert(&entry.range);
        for part in self.proven.intersections(&entry.range) {
            left.remove(&part);
        }
        for shelf in self.shelves.values() {
            for task in shelf.overlapping(&entry.range) {
                let is_new = match task.state {
                    TaskState::Ready => true,
                    TaskState::Waiting => {
                        shelf.last_asked(task.slot).is_some_and(|last| last > sent)
                    }
                    _ => false,
                };
                if is_new && task.is_live() {
                    left.remove(&shelf.range(task.slot));
                }
            }
        }
        left.is_empty()
    }

    /// A full page ends before the range may: the rest is looked at on its own.
    fn cut_at_page_end(&mut self, page_size: u32, start: &Key, regions: &[ScannedRegion]) {
        if (regions.len() as u64) < u64::from(page_size) {
            return;
        }
        let Some(EndKey::Bounded(cut)) = regions.last().map(|last| last.region.range.end().clone())
        else {
            return;
        };
        let Some(entry) = self.retry.remove(start) else {
            return;
        };
        let EntryState::Scanning { mark, .. } = entry.state else {
            return;
        };
        let head = KeyRange::new(entry.range.start().clone(), EndKey::Bounded(cut.clone()));
        let tail = KeyRange::new(cut, entry.range.end().clone());
        match (head.and_then(|head| head.intersection(&entry.range)), tail) {
            (Some(head), Some(tail)) => {
                self.retry.insert(Entry {
                    range: tail,
                    state: EntryState::Queued { mark },
                    ..entry.clone()
                });
                self.retry.insert(Entry {
                    range: head,
                    ..entry
                });
            }
            _ => self.retry.insert(entry),
        }
    }

    /// PD gave no answer: all stores are asked.
    pub(super) fn scan_failed(&mut self, core: &mut Core, request: RequestId, failure: &Failure) {
        let Some(start) = self.retry.scanned_by(request) else {
            core.ignore();
            return;
        };
        if core.judge_pd(failure) {
            self.list_all(&start);
            self.finish_those(core, vec![start]);
        }
    }

    fn list_all(&mut self, start: &Key) {
        let stores: BTreeSet<_> = self.shelves.keys().copied().collect();
        self.begin_listing(start, stores, BTreeMap::new());
    }

    fn begin_listing(
        &mut self,
        start: &Key,
        stores: BTreeSet<StoreId>,
        named: BTreeMap<RegionId, StoreId>,
    ) {
        let Some(EntryState::Scanning { mark, .. }) =
            self.retry.get(start).map(|entry| entry.state.clone())
        else {
            return;
        };
        for store in &stores {
            self.listings.want_for_look(*store, mark);
        }
        let state = EntryState::Listing {
            mark,
            stores,
            named,
        };
        self.retry.set_state(start, state);
    }

    /// Takes in a part of a listing.
    pub(super) fn handle_claims(
        &mut self,
        core: &mut Core,
        session: &Session,
        request: RequestId,
        claims: Vec<Claim>,
        done: bool,
    ) {
        if let Some(store) = self.take_part(core, session, request, claims, done) {
            self.end_listing(core, session, store, request);
            self.finish_looks(core);
        }
    }

    /// A listing failed: it is repeated after a backoff.
    pub(super) fn listing_failed(
        &mut self,
        core: &mut Core,
        store: &Store,
        request: RequestId,
        failure: &Failure,
    ) {
        if core.judge(store, failure, Place::Call) {
            self.fail_listing(core, request);
        }
    }

    fn fail_listing(&mut self, core: &mut Core, request: RequestId) {
        if let Some(store) = self.listings.fail(core, request)
            && let Some(shelf) = self.shelves.get_mut(store)
        {
            shelf.forget_listing();
        }
    }

    /// Ends the looks whose listings are all there.
    pub(super) fn finish_looks(&mut self, core: &mut Core) {
        let listing = self.retry.listing();
        let starts = listing.map(|entry| entry.range.start().clone()).collect();
        self.finish_those(core, starts);
    }

    /// Likewise, but only those that begin at these keys.
    fn finish_those(&mut self, core: &mut Core, mut starts: Vec<Key>) {
        // In key order.
        starts.reverse();
        while let Some(start) = starts.pop() {
            if self.has_all_listings(&start)
                && let Some(entry) = self.retry.remove(&start)
            {
                // One that is widened can be over at once.
                starts.extend(self.finish_look(core, entry));
            }
        }
    }

    fn has_all_listings(&self, start: &Key) -> bool {
        match self.retry.get(start).map(|entry| &entry.state) {
            Some(EntryState::Listing { mark, stores, .. }) => stores
                .iter()
                .all(|store| self.listings.is_complete_since(*store, *mark)),
            _ => false,
        }
    }

    /// Asks whoever claims the range. What nobody claims is looked for at all
    /// stores, and has failed again if that was done. Returns where what is
    /// looked for at all stores begins.
    fn finish_look(&mut self, core: &mut Core, entry: Entry) -> Vec<Key> {
        let mut widened = Vec::new();
        let EntryState::Listing {
            mark,
            stores,
            named,
        } = entry.state.clone()
        else {
            return widened;
        };
        let is_whole = self.shelves.keys().all(|store| stores.contains(store));
        for part in self.proven.gaps(&entry.range).collect::<Vec<_>>() {
            let served = self.ask_claimers(core, &part, &named);
            for rest in served.intersections(&part).collect::<Vec<_>>() {
                self.retry.insert(entry.at_rest(rest));
            }
            for rest in served.gaps(&part).collect::<Vec<_>>() {
                if is_whole {
                    self.fail_again(core, &rest, &entry);
                } else {
                    widened.push(rest.start().clone());
                    self.widen(mark, &named, rest, &entry);
                }
            }
        }
        widened
    }

    /// Nobody is asked for `range` after a look: nobody claims it, or who does has
    /// refused since the look began.
    fn fail_again(&mut self, core: &mut Core, range: &KeyRange, entry: &Entry) {
        self.retry.insert(entry.at_rest(range.clone()));
        let haste = if entry.is_slow {
            Haste::Backoff
        } else {
            Haste::Soon
        };
        let follow_up = FollowUp {
            at_least: entry.not_before.saturating_duration_since(core.now),
            ..FollowUp::new(haste)
        };
        let is_claimed = || {
            let mut shelves = self.shelves.values();
            shelves.any(|shelf| shelf.overlapping(range).iter().any(|task| task.claimed))
        };
        let cause = if !entry.failed.is_empty() {
            entry.cause.clone()
        } else if is_claimed() {
            let known = entry.known.within(range);
            known.say("the stores and PD do not agree on who leads")
        } else {
            let known = entry.known.within(range);
            known.say("no store claims to lead")
        };
        self.fail(core, range, &cause, follow_up);
        self.retry.remember(range, entry);
    }

    /// PD's word was not enough for `range`: all stores are asked, at once.
    fn widen(
        &mut self,
        mark: RequestId,
        named: &BTreeMap<RegionId, StoreId>,
        range: KeyRange,
        entry: &Entry,
    ) {
        let stores: BTreeSet<_> = self.shelves.keys().copied().collect();
        for store in &stores {
            self.listings.want_for_look(*store, mark);
        }
        self.retry.insert(Entry {
            range,
            state: EntryState::Listing {
                mark,
                stores,
                named: named.clone(),
            },
            ..entry.clone()
        });
    }

    /// Lets every claimer of `part` be asked. Returns the ranges of those that
    /// are asked or about to be.
    fn ask_claimers(
        &mut self,
        core: &Core,
        part: &KeyRange,
        named: &BTreeMap<RegionId, StoreId>,
    ) -> KeyRangeSet {
        let mut claimers = Vec::new();
        for (store, shelf) in self.shelves.iter() {
            for task in shelf.overlapping(part) {
                if task.claimed {
                    claimers.push((*store, task));
                }
            }
        }
        let mut served = KeyRangeSet::new();
        for (store, task) in &claimers {
            let may_ask = (core.config.proof == Proof::Read
                || (named.get(&task.id) == Some(store) && self.is_only_claimer(*store, task)))
                && !self.is_resting(*store, task);
            let Some(shelf) = self.shelves.get_mut(*store) else {
                continue;
            };
            if may_ask && matches!(task.state, TaskState::Idle | TaskState::Proven) {
                if task.state == TaskState::Proven {
                    self.confirmed = self.confirmed.saturating_sub(1);
                }
                shelf.make_ready(task.slot, core.now);
            }
            if shelf.task(task.slot).is_some_and(|task| task.is_live()) {
                served.insert(&shelf.range(task.slot));
            }
        }
        served
    }

    /// Returns whether the claim reaches into another range whose backoff it is
    /// the cause of.
    fn is_resting(&self, store: StoreId, task: &Task) -> bool {
        self.shelves.get(&store).is_some_and(|shelf| {
            let asked = (store, task.id, task.epoch);
            self.retry.is_resting(&shelf.range(task.slot), &asked)
        })
    }

    fn is_only_claimer(&self, store: StoreId, task: &Task) -> bool {
        let Some(range) = self.shelves.get(&store).map(|shelf| shelf.range(task.slot)) else {
            return false;
        };
        let mut others = self.shelves.iter().flat_map(|(other, shelf)| {
            let tasks = shelf.overlapping(&range).into_iter();
            tasks.filter(move |found| (*other, found.id) != (store, task.id))
        });
        task.clean && !others.any(|other| other.claimed)
    }
}

/// Asks PD for the regions of a range.
fn scan(core: &mut Core, range: &KeyRange, mark: RequestId) -> EntryState {
    let request = core.number();
    core.emit(Effect::ScanRegions {
        request,
        range: range.clone(),
        limit: core.config.page_size,
    });
    EntryState::Scanning {
        request,
        sent: core.now,
        mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Config;
    use std::time::Duration;

    use crate::machine::entry::{Asked, Setbacks};
    use crate::machine::shelf::Shelf;
    use crate::region::{PeerId, Region, RegionEpoch};
    use crate::time::Timestamp;

    fn core() -> Core {
        Core::new(Config::default(), Timestamp::ZERO)
    }

    fn keys(from: u8, to: u8) -> KeyRange {
        let end = EndKey::Bounded(Key::from(&[to]));
        KeyRange::new(Key::from(&[from]), end).expect("not empty")
    }

    fn everything(state: EntryState) -> Entry {
        Entry {
            setbacks: Setbacks {
                tries: 3,
                ..Setbacks::default()
            },
            suspects: BTreeSet::from([StoreId(1)]),
            ..Entry::new(KeyRange::whole(), state)
        }
    }

    #[test]
    fn parts_that_were_left_of_one_range_do_not_make_for_more_scans() {
        let (mut core, mut asking) = (core(), Asking::default());
        for at in 1..12 {
            asking.proven.insert(&keys(2 * at, 2 * at + 1));
        }
        let mark = core.mark();
        asking.retry.insert(everything(EntryState::Queued { mark }));
        asking.run_queue(&mut core);
        let mut scanned = Vec::new();
        while let Some(Effect::ScanRegions { range, .. }) = core.poll_effect() {
            scanned.push(range);
        }
        let parts: Vec<KeyRange> = asking.proven.gaps(&KeyRange::whole()).collect();
        assert_eq!(scanned, parts[..SCANS_MAX]);
        let noted: Vec<_> = asking.retry.iter().map(|entry| &entry.range).collect();
        assert_eq!(noted, parts.iter().collect::<Vec<_>>());
        asking.retry.check().expect("sound");
    }

    #[test]
    fn a_look_ends_for_what_is_asked_and_fails_for_the_rest() {
        let (mut asking, _) = claimed();
        asking.proven.insert(&keys(8, 9));
        asking.finish_look(&mut core(), everything(listing(&[1])));
        let noted: Vec<_> = asking
            .retry
            .iter()
            .map(|entry| {
                let is_armed = matches!(entry.state, EntryState::Armed { .. });
                (
                    entry.range.start().as_bytes(),
                    entry.setbacks.tries,
                    is_armed,
                )
            })
            .collect();
        let expected: [(&[u8], u32, bool); 4] = [
            (&[], 4, true),
            (&[4], 3, false),
            (&[6], 4, true),
            (&[9], 4, true),
        ];
        assert_eq!(noted, expected);
        let resting = asking.retry.get(&Key::from(&[4])).expect("noted");
        assert_eq!(resting.range, keys(4, 6));
        asking.retry.check().expect("sound");
    }

    /// A store that claims what lies between 4 and 6.
    fn claimed() -> (Asking, Asked) {
        let claim = Claim {
            region: Region {
                id: RegionId(7),
                range: keys(4, 6),
                epoch: RegionEpoch::default(),
                peers: Vec::new(),
            },
            has_pending_admin: false,
        };
        let mut shelf = Shelf::default();
        shelf.collect(&claim, PeerId(1));
        shelf.seal();
        let asking = Asking::new(BTreeMap::from([(StoreId(1), shelf)]));
        (asking, (StoreId(1), RegionId(7), RegionEpoch::default()))
    }

    fn listing(stores: &[u64]) -> EntryState {
        EntryState::Listing {
            mark: RequestId(1),
            stores: stores.iter().map(|id| StoreId(*id)).collect(),
            named: BTreeMap::new(),
        }
    }

    /// What was refused while the look went on decides how soon it may be asked
    /// again, and is remembered.
    #[test]
    fn what_was_refused_during_a_look_rests_as_it_wants() {
        let secs = |secs: u64| Timestamp::from_micros(secs * 1_000_000);
        for (is_slow, not_before, least) in [
            (false, Timestamp::ZERO, Duration::ZERO),
            (true, Timestamp::ZERO, Duration::from_millis(50)),
            (false, secs(3), Duration::from_secs(3)),
        ] {
            let mut asking = Asking::new(BTreeMap::from([(StoreId(1), Shelf::default())]));
            let asked = (StoreId(1), RegionId(7), RegionEpoch::default());
            let looked_at = Entry {
                failed: BTreeSet::from([asked]),
                is_slow,
                not_before,
                cause: "it was refused".to_owned(),
                ..everything(listing(&[1]))
            };
            asking.finish_look(&mut core(), looked_at);
            let entry = asking.retry.get(&Key::EMPTY).expect("noted");
            let EntryState::Armed { due } = entry.state else {
                panic!("{entry:?}");
            };
            let wait = due.saturating_duration_since(Timestamp::ZERO);
            assert!(
                wait >= least && wait <= least + Duration::from_millis(100),
                "{wait:?}"
            );
            assert_eq!(entry.cause, "it was refused");
            assert!(asking.retry.is_resting(&keys(4, 6), &asked));
        }
    }

    /// A claim that reaches into a range whose backoff it is the cause of is left
    /// alone by the look at another one.
    #[test]
    fn a_look_asks_nobody_whose_backoff_runs() {
        for rests in [false, true] {
            let (mut asking, asked) = claimed();
            asking.retry.insert(Entry {
                failed: rests.then_some(asked).into_iter().collect(),
                ..Entry::new(
                    keys(5, 8),
                    EntryState::Armed {
                        due: Timestamp::MAX,
                    },
                )
            });
            asking.finish_look(&mut core(), Entry::new(keys(1, 5), listing(&[1])));
            let ready = asking.shelves[&StoreId(1)].ready.len();
            assert_eq!(ready, usize::from(!rests));
        }
    }

    /// Where the named stores claim nothing all are listed, for just what is left.
    #[test]
    fn a_look_is_widened_for_what_nobody_named_claims() {
        let (mut asking, _) = claimed();
        asking.shelves.of(StoreId(2));
        asking.finish_look(&mut core(), Entry::new(keys(1, 9), listing(&[1])));
        let left: Vec<_> = asking
            .retry
            .listing()
            .map(|entry| entry.range.clone())
            .collect();
        assert_eq!(left, [keys(1, 4), keys(6, 9)]);
        for entry in asking.retry.listing() {
            assert!(
                matches!(&entry.state, EntryState::Listing { stores, .. } if stores.len() == 2)
            );
        }
        let wanted: Vec<_> = asking.listings.outstanding().collect();
        assert_eq!(wanted, [StoreId(1), StoreId(2)]);
        asking.retry.check().expect("sound");
    }

    /// A range needs no listing when all of it is about to be asked, unless
    /// something failed there since.
    #[test]
    fn what_failed_since_is_listed_though_it_is_about_to_be_asked() {
        for (proof, is_stale, expected) in [
            (Proof::Read, false, true),
            (Proof::Read, true, false),
            (Proof::Claims, false, false),
        ] {
            let config = Config {
                proof,
                ..Config::default()
            };
            let core = Core::new(config, Timestamp::ZERO);
            let (mut asking, _) = claimed();
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            let slot = shelf.get(RegionId(7)).expect("known").slot;
            shelf.claim(slot, PeerId(1), true);
            shelf.make_ready(slot, Timestamp::ZERO);
            let state = EntryState::Scanning {
                request: RequestId(2),
                sent: Timestamp::ZERO,
                mark: RequestId(1),
            };
            let entry = Entry {
                is_stale,
                ..Entry::new(keys(4, 6), state)
            };
            assert_eq!(asking.is_asked_anew(&core, &entry), expected);
        }
    }
}
