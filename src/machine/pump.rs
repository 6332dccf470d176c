use super::Effect;
use super::asking::Asking;
use super::core::Core;
use super::follow_up::{FollowUp, Haste};
use super::reads::Reads;
use super::session::{Session, StoreBook};
use super::shelf::{Shelf, TaskState};
use super::timer::{Timer, Timers};
use crate::range::KeyRangeSet;
use crate::region::{ReadTarget, WaitTarget};

/// Sending: what is ready goes out as far as the windows allow.
impl Asking {
    /// Hands out all waits, reads, scans, listings and lists that are due.
    pub(super) fn pump(&mut self, core: &mut Core, session: &Session) {
        let Self {
            shelves,
            proven,
            reads,
            ..
        } = self;
        shelves.settle(|store, shelf| {
            if let Some(book) = session.stores.get(&store) {
                // Reads first: they make room for waits, and a shelf on which
                // nothing is in flight is not come back to.
                pump_reads(core, book, shelf, reads);
                shelf.trim_unsent();
                pump_waits(core, book, shelf, proven);
                shelf.trim_unsent();
            }
        });
        self.catch_leftovers(core);
        self.note_stragglers(core);
        self.run_queue(core);
        if self.retry.active() == 0 {
            self.listings.forget_looks();
        }
        self.listings.start(core, session, false);
        self.pump_store_list(core);
    }

    /// When nothing is under way the gaps of what is proven decide what is left
    /// to do, whatever the books say.
    fn catch_leftovers(&mut self, core: &mut Core) {
        let busy = self.in_flight_up_to(1) > 0 || self.has_unsent() || self.retry.active() > 0;
        if busy || self.is_complete(core) {
            return;
        }
        let target = core.config.target.clone();
        for gap in self.proven.gaps(&target).collect::<Vec<_>>() {
            self.fail(
                core,
                &gap,
                "no store claims to lead it",
                FollowUp::new(Haste::Backoff),
            );
        }
    }

    /// Returns whether regions wait for a place in a window.
    pub(super) fn has_unsent(&self) -> bool {
        let mut shelves = self.shelves.values();
        shelves.any(|shelf| !shelf.ready.is_empty() || !shelf.confirmed.is_empty())
    }

    pub(super) fn pump_store_list(&mut self, core: &mut Core) {
        let wanted = self
            .store_list_wanted
            .is_some_and(|mark| self.store_list_completed.is_none_or(|number| number < mark));
        if wanted && self.store_list.is_idle() {
            let request = self.store_list.start(core);
            core.emit(Effect::ListStores { request });
        }
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, core: &mut Core) {
        self.expire_waits(core);
        self.expire_reads(core);
        self.expire_stragglers(core);
        self.expire_looks(core);
        if self.store_list.is_due(core.now) {
            self.store_list.rest();
        }
        if self
            .store_list
            .is_overdue(core.now, core.config.call_timeout)
        {
            self.store_list.fail(core);
        }
    }

    /// A wait that is unanswered for its deadline goes on, but its region is
    /// looked at anew (rule R8).
    fn expire_waits(&mut self, core: &mut Core) {
        let mut overdue = Vec::new();
        let timeout = core.config.ask_timeout;
        let oldest = self.shelves.oldest_waits();
        let due = oldest.filter(|(_, sent)| *sent + timeout <= core.now);
        for store in due.map(|(store, _)| store).collect::<Vec<_>>() {
            let Some(shelf) = self.shelves.get_mut(store) else {
                continue;
            };
            // What is looked at anew goes to the back with the time of now, so
            // one pass over those that were there is enough.
            for _ in 0..shelf.asked.len() {
                shelf.trim_asked();
                let due = shelf
                    .oldest_wait()
                    .is_some_and(|sent| sent < core.now && sent + timeout <= core.now);
                if !due {
                    break;
                }
                if let Some((_, slot)) = shelf.asked.pop_front()
                    && let Some(task) = shelf.task(slot)
                {
                    shelf.note_asked(slot, core.now);
                    overdue.push((store, task.id, shelf.range(slot)));
                    shelf.asked.push_back((core.now, slot));
                }
            }
        }
        for (store, id, range) in overdue {
            let text = format!(
                "region {id} at store {store}: the wait is unanswered for {:?}",
                timeout
            );
            let follow_up = FollowUp::at(store, Haste::AtOnce).about(id, store);
            self.fail(core, &range, &text, follow_up);
        }
    }

    fn expire_reads(&mut self, core: &mut Core) {
        let overdue = self.reads.overdue(core.config.read_timeout, core.now);
        for request in overdue {
            let text = format!(
                "the leader read is unanswered for {:?}",
                core.config.read_timeout
            );
            self.reads_failed(core, request, &text);
        }
    }

    pub(super) fn timers(&self, core: &Core, timers: &mut Timers) {
        for (store, sent) in self.shelves.oldest_waits() {
            timers.add(sent + core.config.ask_timeout, Timer::Ask(store));
        }
        if let Some((progress, request)) = self.reads.oldest() {
            timers.add(progress + core.config.read_timeout, Timer::Read(request));
        }
        timers.add_some(self.retry.next_due(), Timer::Retry);
        timers.add_some(self.stragglers.due(), Timer::Retry);
        self.look_timers(core, timers);
        self.listings.timers(core, timers);
        timers.add_some(
            self.store_list.deadline(core.config.call_timeout),
            Timer::StoreList,
        );
    }
}

/// Asks as many regions as the window allows.
fn pump_waits(core: &mut Core, book: &StoreBook, shelf: &mut Shelf, proven: &KeyRangeSet) {
    let window = core.config.window;
    let mut regions = Vec::new();
    while shelf.has_room_for_waits(window) {
        let Some(slot) = shelf.ready.pop_front() else {
            break;
        };
        let Some(task) = shelf.task(slot) else {
            continue;
        };
        if task.state != TaskState::Ready {
            continue;
        }
        if shelf.is_covered(slot, proven) {
            shelf.make_idle(slot);
            continue;
        }
        shelf.begin_wait(slot, core.now);
        regions.push(WaitTarget {
            region_id: task.id,
            epoch: task.epoch,
        });
    }
    if !regions.is_empty() {
        core.emit(Effect::WaitApply {
            stream: book.stream,
            store_id: book.store.id,
            regions,
        });
    }
}

/// Reads as many regions as the store can take. A call costs much and a region in
/// it little, so the next one waits until there is room for half of them.
fn pump_reads(core: &mut Core, book: &StoreBook, shelf: &mut Shelf, reads: &mut Reads) {
    if !shelf.has_room_for_reads(core.config.window) {
        return;
    }
    let most = shelf.pace.most(core.config.window);
    let mut regions = Vec::new();
    let mut request = None;
    while shelf.reads < most {
        let Some(slot) = shelf.confirmed.pop_front() else {
            break;
        };
        // One that was dropped and came back may be there twice.
        if let Some(task) = shelf.task(slot)
            && task.state == TaskState::Confirmed
        {
            shelf.begin_read(slot, *request.get_or_insert_with(|| core.number()));
            regions.push(ReadTarget {
                region_id: task.id,
                epoch: task.epoch,
                peer_id: task.peer_id,
            });
        }
    }
    let Some(request) = request else {
        return;
    };
    let ids = regions.iter().map(|target| target.region_id);
    reads.begin(request, book.store.id, ids, core.now);
    core.emit(Effect::LeaderRead {
        request,
        store: book.store.clone(),
        regions,
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::machine::entry::{Entry, EntryState};
    use crate::machine::shelf::Slot;
    use crate::machine::{Config, RequestId};
    use crate::range::KeyRange;
    use crate::region::{Claim, PeerId, Region, RegionEpoch, RegionId, StoreId};
    use crate::time::Timestamp;

    fn below_b() -> KeyRange {
        KeyRange::from_wire("", "b").expect("not empty")
    }

    /// A store claims what lies below `b`; nobody has a word about the rest.
    fn asking(begin: impl FnOnce(&mut Shelf, Slot)) -> Asking {
        let claim = Claim {
            region: Region {
                id: RegionId(1),
                range: below_b(),
                epoch: RegionEpoch::default(),
                peers: Vec::new(),
            },
            has_pending_admin: false,
        };
        let mut shelf = Shelf::default();
        shelf.collect(&claim, PeerId(1));
        shelf.seal();
        let slot = shelf.get(RegionId(1)).expect("known").slot;
        begin(&mut shelf, slot);
        Asking::new(BTreeMap::from([(StoreId(1), shelf)]))
    }

    fn catches(asking: &mut Asking) -> bool {
        let mut core = Core::new(Config::default(), Timestamp::ZERO);
        let before = asking.retry.active();
        asking.catch_leftovers(&mut core);
        asking.retry.active() > before
    }

    #[test]
    fn what_is_left_over_is_looked_at_once_nothing_is_under_way() {
        assert!(catches(&mut asking(|_, _| {})));
        let under_way: [fn(&mut Shelf, Slot); 4] = [
            |shelf, slot| shelf.make_ready(slot, Timestamp::ZERO),
            |shelf, slot| shelf.begin_wait(slot, Timestamp::ZERO),
            |shelf, slot| shelf.make_confirmed(slot),
            |shelf, slot| shelf.begin_read(slot, RequestId(9)),
        ];
        for begin in under_way {
            assert!(!catches(&mut asking(begin)));
        }
        let mut due = asking(|_, _| {});
        let mark = RequestId(1);
        due.retry
            .insert(Entry::new(below_b(), EntryState::Queued { mark }));
        assert!(!catches(&mut due));
        let mut proven = asking(|_, _| {});
        proven.proven.insert(&KeyRange::whole());
        assert!(!catches(&mut proven));
    }

    /// A session with the one store.
    fn session() -> Session {
        let store = crate::region::Store {
            id: StoreId(1),
            ..crate::region::Store::default()
        };
        let mut session = Session::default();
        session.add(store, RequestId(1));
        session
    }

    fn core(window: u32) -> Core {
        let config = Config {
            window,
            ..Config::default()
        };
        Core::new(config, Timestamp::ZERO)
    }

    /// A call for a few regions costs nearly as much as one for many.
    #[test]
    fn reads_wait_until_half_of_the_window_is_free() {
        let session = session();
        for (in_flight, goes_out) in [(0, true), (2, true), (3, false), (4, false)] {
            let mut core = core(4);
            let mut asking = asking(|shelf, slot| shelf.make_confirmed(slot));
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            shelf.reads = in_flight;
            let book = &session.stores[&StoreId(1)];
            pump_reads(&mut core, book, shelf, &mut asking.reads);
            assert_eq!(core.poll_effect().is_some(), goes_out, "{in_flight}");
        }
    }

    /// A store that claims regions numbered from 1 on.
    fn claims(regions: u16) -> Asking {
        let mut shelf = Shelf::default();
        for id in 1..=regions {
            let keys = [id.to_be_bytes(), (id + 1).to_be_bytes()];
            let range = KeyRange::from_wire(keys[0].to_vec(), keys[1].to_vec());
            let claim = Claim {
                region: Region {
                    id: RegionId(id.into()),
                    range: range.expect("not empty"),
                    epoch: RegionEpoch::default(),
                    peers: Vec::new(),
                },
                has_pending_admin: false,
            };
            shelf.collect(&claim, PeerId(1));
        }
        shelf.seal();
        Asking::new(BTreeMap::from([(StoreId(1), shelf)]))
    }

    /// Returns the regions of the waits and of the reads that were sent.
    fn sent(core: &mut Core) -> [Vec<u64>; 2] {
        let [mut waits, mut reads] = [Vec::new(), Vec::new()];
        while let Some(effect) = core.poll_effect() {
            match effect {
                Effect::WaitApply { regions, .. } => {
                    waits.extend(regions.iter().map(|target| target.region_id.0));
                }
                Effect::LeaderRead { regions, .. } => {
                    reads.extend(regions.iter().map(|target| target.region_id.0));
                }
                _ => {}
            }
        }
        [waits, reads]
    }

    fn slot(asking: &Asking, id: u64) -> Slot {
        let task = asking.shelves[&StoreId(1)].get(RegionId(id));
        task.expect("known").slot
    }

    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        let (mut core, session) = (core(8), session());
        let mut asking = claims(10);
        for id in 1..=10 {
            let slot = slot(&asking, id);
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            shelf.make_confirmed(slot);
            shelf.reads = 3;
        }
        asking.pump(&mut core, &session);
        assert_eq!(sent(&mut core), [vec![], (1..=5).collect()]);
    }

    /// What is confirmed and cannot be read yet is bounded.
    #[test]
    fn waits_do_not_run_far_ahead_of_the_reads() {
        for (confirmed, goes_out) in [(5, true), (6, false), (7, false)] {
            let (mut core, session) = (core(3), session());
            let mut asking = claims(8);
            for id in 1..=confirmed {
                let slot = slot(&asking, id);
                let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
                shelf.make_confirmed(slot);
                // The window for reads is full.
                shelf.reads = 3;
            }
            let ready = slot(&asking, 8);
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            shelf.make_ready(ready, Timestamp::ZERO);
            asking.pump(&mut core, &session);
            let [waits, reads] = sent(&mut core);
            assert_eq!((waits.len(), reads.len()), (goes_out.into(), 0));
        }
    }

    #[test]
    fn only_the_waits_that_are_overdue_are_looked_at_anew() {
        let (mut core, session) = (core(8), session());
        let mut asking = claims(2);
        let late = Timestamp::from_micros(1_000_000);
        for (id, sent) in [(1, Timestamp::ZERO), (2, late)] {
            let slot = slot(&asking, id);
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            shelf.begin_wait(slot, sent);
        }
        core.now = late;
        asking.pump(&mut core, &session);
        core.now = Timestamp::ZERO + core.config.ask_timeout;
        asking.expire_waits(&mut core);
        let looked_at: Vec<_> = asking.retry.iter().map(|entry| &entry.range).collect();
        let first = asking.shelves[&StoreId(1)].range(slot(&asking, 1));
        assert_eq!(looked_at, [&first]);
    }

    #[test]
    fn what_was_confirmed_and_is_gone_keeps_no_wait_from_being_sent() {
        let (mut core, session) = (core(1), session());
        let mut asking = claims(4);
        let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
        for id in 1..=3 {
            let slot = shelf.get(RegionId(id)).expect("known").slot;
            shelf.make_confirmed(slot);
            shelf.remove(RegionId(id));
        }
        let slot = shelf.get(RegionId(4)).expect("known").slot;
        shelf.make_ready(slot, Timestamp::ZERO);
        asking.pump(&mut core, &session);
        assert_eq!(sent(&mut core), [vec![4], vec![]]);
    }

    /// A region whose claim goes and comes while its read waits for its turn.
    #[test]
    fn a_region_that_is_confirmed_twice_is_read_once() {
        let (mut core, session) = (core(4), session());
        let mut asking = claims(2);
        let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
        let slots = [1, 2].map(|id| shelf.get(RegionId(id)).expect("known").slot);
        for slot in [slots[0], slots[1], slots[1], slots[0]] {
            shelf.make_confirmed(slot);
        }
        asking.pump(&mut core, &session);
        assert_eq!(sent(&mut core), [vec![], vec![1, 2]]);
        asking.shelves.check(4).expect("sound");
    }

    /// However many answers come at a time.
    #[test]
    fn a_store_that_is_fast_again_is_given_the_whole_window_again() {
        for at_a_time in [1, 3, 8, 100] {
            let (mut core, session) = (core(512), session());
            let mut asking = claims(8_000);
            let shelf = asking.shelves.get_mut(StoreId(1)).expect("known");
            for _ in 0..9 {
                shelf.pace.note_silence(512, 512);
            }
            // Some are slow in coming yet.
            let mut slow = 40;
            let slots: Vec<_> = shelf.iter().map(|task| task.slot).collect();
            for slot in slots {
                shelf.note_asked(slot, Timestamp::ZERO);
                shelf.make_confirmed(slot);
            }
            assert!(shelf.pace.most(512) < 32, "slow at first");
            let mut most = 0;
            for _ in 0..8_000 {
                asking.pump(&mut core, &session);
                sent(&mut core);
                let shelf = &asking.shelves[&StoreId(1)];
                most = most.max(shelf.reads);
                let reading = shelf.iter().filter_map(|task| {
                    let request = shelf.read_of(task.slot)?;
                    let answer = crate::region::ReadAnswer {
                        region_id: task.id,
                        epoch: task.epoch,
                        result: Ok(()),
                    };
                    Some((request, answer))
                });
                let answers: Vec<_> = reading.take(at_a_time).collect();
                if answers.is_empty() || most == 512 {
                    break;
                }
                if slow > 0 {
                    core.now = core.now + Duration::from_secs(2);
                    slow -= 1;
                }
                for (request, answer) in answers {
                    asking.handle_read(&mut core, &session, request, &answer);
                }
            }
            assert_eq!(most, 512, "{at_a_time} answers at a time");
        }
    }
}
