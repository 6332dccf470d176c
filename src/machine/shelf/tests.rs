use super::{Shelf, Slot, Task, TaskState};
use crate::machine::RequestId;
use crate::range::{EndKey, Key, KeyRange};
use crate::region::{Claim, PeerId, Region, RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

const STORE: StoreId = StoreId(1);
const WINDOW: u32 = 8;

fn at(secs: u64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

fn keys(from: u8, to: u8) -> KeyRange {
    let end = EndKey::Bounded(Key::from(&[to]));
    KeyRange::new(Key::from(&[from]), end).expect("not empty")
}

fn claim(id: u64, from: u8, to: u8) -> Claim {
    Claim {
        region: Region {
            id: RegionId(id),
            range: keys(from, to),
            epoch: RegionEpoch {
                conf_ver: 1,
                version: 1,
            },
            peers: Vec::new(),
        },
        has_pending_admin: false,
    }
}

/// The same regions on a shelf, once from the first listing and once come late.
fn shelves(claims: &[Claim]) -> [Shelf; 2] {
    let (mut sorted, mut late) = (Shelf::default(), Shelf::default());
    for claim in claims {
        sorted.collect(claim, PeerId(1));
        late.put(claim, PeerId(1));
    }
    sorted.seal();
    [sorted, late]
}

fn slot(shelf: &Shelf, id: u64) -> Slot {
    shelf.get(RegionId(id)).expect("known").slot
}

fn state(shelf: &Shelf, id: u64) -> Option<TaskState> {
    shelf.get(RegionId(id)).map(|task| task.state)
}

fn send(shelf: &mut Shelf, id: u64, now: Timestamp) {
    shelf.begin_wait(slot(shelf, id), now);
}

/// Lets a listing claim nothing but the regions that are named.
fn list_only(shelf: &mut Shelf, claims: &[Claim]) {
    for claim in claims {
        assert!(shelf.list(claim, PeerId(1), true));
    }
    shelf.end_listing(RequestId(1));
}

#[test]
fn a_claim_matches_only_with_epoch_and_range() {
    for shelf in shelves(&[claim(1, 2, 4)]) {
        assert_eq!(shelf.matching(&claim(1, 2, 4)), Some(slot(&shelf, 1)));
        assert_eq!(shelf.matching(&claim(1, 2, 5)), None);
        assert_eq!(shelf.matching(&claim(2, 2, 4)), None);
        let mut other = claim(1, 2, 4);
        other.region.epoch.conf_ver = 2;
        assert_eq!(shelf.matching(&other), None);
    }
}

#[test]
fn regions_of_one_start_are_in_the_order_of_their_ids() {
    // As when a store still claims a region that was split since.
    let claims = [
        claim(3, 1, 2),
        claim(2, 2, 9),
        claim(1, 2, 4),
        claim(4, 9, 10),
    ];
    for mut shelf in shelves(&claims) {
        let found = shelf.overlapping(&keys(1, 9));
        let ids: Vec<u64> = found.iter().map(|task| task.id.0).collect();
        assert_eq!(ids, [3, 1, 2]);
        shelf.tidy();
        shelf.make_all_ready();
        let ready = shelf.ready.iter().filter_map(|slot| shelf.task(*slot));
        let ids: Vec<u64> = ready.map(|task| task.id.0).collect();
        assert_eq!(ids, [3, 1, 2, 4]);
    }
}

#[test]
fn a_claim_tells_which_peer_is_to_be_read_from() {
    for mut shelf in shelves(&[claim(1, 2, 4)]) {
        let peer = |shelf: &Shelf| shelf.get(RegionId(1)).map(|task| task.peer_id);
        assert_eq!(peer(&shelf), Some(PeerId(1)));
        shelf.claim(slot(&shelf, 1), PeerId(8), true);
        assert_eq!(peer(&shelf), Some(PeerId(8)));
    }
}

#[test]
fn what_overlaps_is_found_also_behind_what_is_no_longer_claimed() {
    let claims = [
        claim(1, 1, 2),
        claim(2, 2, 9),
        claim(3, 3, 4),
        claim(4, 9, 10),
    ];
    for mut shelf in shelves(&claims) {
        // A leftover that ends early does not hide the long one before it.
        list_only(
            &mut shelf,
            &[claim(1, 1, 2), claim(2, 2, 9), claim(4, 9, 10)],
        );
        let found = |from, to| -> Vec<u64> {
            let tasks = shelf.overlapping(&keys(from, to));
            tasks.into_iter().map(|task| task.id.0).collect()
        };
        assert_eq!(found(5, 6), [2]);
        assert_eq!(found(3, 9), [2, 3]);
        assert_eq!(found(8, 10), [2, 4]);
        assert_eq!(found(10, 11), [0_u64; 0]);
        assert_eq!((shelf.len(), shelf.iter().count()), (4, 4));
    }
}

#[test]
fn a_wait_that_nobody_wants_keeps_its_slot_until_it_is_answered() {
    for mut shelf in shelves(&[claim(1, 1, 2), claim(2, 2, 3)]) {
        send(&mut shelf, 1, at(1));
        shelf.put(&claim(1, 1, 3), PeerId(1));
        assert_eq!((shelf.waits, state(&shelf, 1)), (1, Some(TaskState::Idle)));
        shelf.check(STORE, WINDOW).expect("sound");
        shelf.make_ready(slot(&shelf, 1), at(2));
        assert_eq!(state(&shelf, 1), Some(TaskState::Blocked));
        assert!(shelf.ready.is_empty());
        assert_eq!(shelf.asked.back(), Some(&(at(2), slot(&shelf, 1))));
        assert!(!shelf.settle_orphan(RegionId(2), at(3)), "that is another");
        assert!(shelf.settle_orphan(RegionId(1), at(3)));
        assert_eq!((shelf.waits, state(&shelf, 1)), (0, Some(TaskState::Ready)));
        assert!(!shelf.settle_orphan(RegionId(1), at(3)), "only once");
        // One that was not blocked by it stays as it is.
        send(&mut shelf, 2, at(4));
        shelf.put(&claim(2, 2, 5), PeerId(1));
        assert!(shelf.settle_orphan(RegionId(2), at(5)));
        assert_eq!(state(&shelf, 2), Some(TaskState::Idle));
        shelf.check(STORE, WINDOW).expect("sound");
    }
}

#[test]
fn an_answer_without_a_name_is_for_the_only_wait() {
    for mut shelf in shelves(&[claim(1, 1, 2), claim(2, 2, 3)]) {
        let only = |shelf: &Shelf| shelf.only_wait().map(|task| task.id.0);
        assert_eq!(only(&shelf), None);
        send(&mut shelf, 2, at(1));
        assert_eq!(only(&shelf), Some(2));
        send(&mut shelf, 1, at(1));
        assert_eq!(only(&shelf), None);
        shelf.end_wait(slot(&shelf, 2));
        assert_eq!(only(&shelf), Some(1));
        // An orphan could be meant as well.
        shelf.remove(RegionId(1));
        assert_eq!(shelf.waits, 1);
        assert_eq!(only(&shelf), None);
    }
}

#[test]
fn the_oldest_unanswered_wait_counts() {
    for mut shelf in shelves(&[claim(1, 1, 2), claim(2, 2, 3), claim(3, 3, 4)]) {
        assert_eq!(shelf.oldest_wait(), None);
        for id in 1..=3 {
            send(&mut shelf, id, at(id));
        }
        shelf.end_wait(slot(&shelf, 1));
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), Some(at(2)));
        // Asked anew since: the older entry is void.
        shelf.note_asked(slot(&shelf, 2), at(7));
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), Some(at(3)));
        shelf.end_wait(slot(&shelf, 3));
        shelf.trim_asked();
        assert_eq!(shelf.oldest_wait(), None);
    }
}

#[test]
fn one_slow_wait_does_not_keep_all_that_were_answered_after_it() {
    let claims: Vec<Claim> = (1..=2)
        .map(|id| claim(id, id as u8, id as u8 + 1))
        .collect();
    for mut shelf in shelves(&claims) {
        send(&mut shelf, 1, at(1));
        for secs in 2..5_000 {
            send(&mut shelf, 2, at(secs));
            shelf.end_wait(slot(&shelf, 2));
        }
        assert!(shelf.asked.len() < 1_000, "{}", shelf.asked.len());
        assert_eq!(shelf.oldest_wait(), Some(at(1)));
    }
}

#[test]
fn reads_are_counted_until_they_end_or_go() {
    for mut shelf in shelves(&[claim(1, 1, 2), claim(2, 2, 3)]) {
        for id in [1, 2] {
            send(&mut shelf, id, at(1));
            shelf.end_wait(slot(&shelf, id));
            shelf.make_confirmed(slot(&shelf, id));
            assert_eq!(state(&shelf, id), Some(TaskState::Confirmed));
            shelf.begin_read(slot(&shelf, id), RequestId(9));
            assert_eq!(shelf.read_of(slot(&shelf, id)), Some(RequestId(9)));
        }
        assert_eq!(shelf.reads, 2);
        shelf.end_read(slot(&shelf, 1));
        assert_eq!((shelf.reads, state(&shelf, 1)), (1, Some(TaskState::Idle)));
        assert_eq!(shelf.read_of(slot(&shelf, 1)), None);
        let (gone, range) = shelf.remove(RegionId(2)).expect("known");
        assert_eq!((gone.id, range), (RegionId(2), keys(2, 3)));
        assert_eq!((shelf.reads, shelf.waits), (0, 0));
        assert_eq!(shelf.remove(RegionId(2)), None);
        shelf.check(STORE, WINDOW).expect("sound");
    }
}

#[test]
fn the_time_of_a_proof_counts_from_when_it_was_asked_first() {
    for mut shelf in shelves(&[claim(1, 1, 2)]) {
        assert_eq!(shelf.first_asked(slot(&shelf, 1)), None);
        send(&mut shelf, 1, at(3));
        shelf.end_wait(slot(&shelf, 1));
        shelf.make_ready(slot(&shelf, 1), at(4));
        send(&mut shelf, 1, at(5));
        assert_eq!(shelf.first_asked(slot(&shelf, 1)), Some(at(3)));
        shelf.end_wait(slot(&shelf, 1));
        shelf.make_proven(slot(&shelf, 1), at(6));
        assert_eq!(shelf.first_asked(slot(&shelf, 1)), None);
        assert_eq!(shelf.last_proof, Some(at(6)));
        assert_eq!(shelf.proven_slots(), [slot(&shelf, 1)]);
    }
}

#[test]
fn everything_is_asked_in_key_order() {
    let [mut sorted, _] = shelves(&[claim(1, 5, 6), claim(2, 1, 2), claim(3, 3, 4)]);
    sorted.make_all_ready();
    let ids = sorted.ready.iter().filter_map(|slot| sorted.task(*slot));
    let ids: Vec<u64> = ids.map(|task| task.id.0).collect();
    assert_eq!(ids, [2, 3, 1]);
    assert_eq!(state(&sorted, 3), Some(TaskState::Ready));
}

/// Sorting anew moves rows; what is queued, asked or read moves along.
#[test]
fn what_is_under_way_survives_tidying() {
    let claims: Vec<Claim> = (1..=9)
        .map(|id| claim(id, 10 - id as u8, 11 - id as u8))
        .collect();
    let [_, mut shelf] = shelves(&claims);
    send(&mut shelf, 1, at(1));
    send(&mut shelf, 2, at(2));
    shelf.end_wait(slot(&shelf, 2));
    shelf.make_confirmed(slot(&shelf, 2));
    shelf.make_ready(slot(&shelf, 3), at(3));
    shelf.remove(RegionId(4));
    let before = slot(&shelf, 1);
    shelf.tidy();
    assert_ne!(slot(&shelf, 1), before);
    assert_eq!(shelf.len(), 8);
    assert_eq!(shelf.get(RegionId(4)), None);
    assert_eq!(shelf.oldest_wait(), Some(at(1)));
    assert_eq!(shelf.only_wait().map(|task| task.id), Some(RegionId(1)));
    assert_eq!(shelf.ready, [slot(&shelf, 3)]);
    assert_eq!(shelf.confirmed, [slot(&shelf, 2)]);
    assert_eq!(shelf.first_asked(slot(&shelf, 2)), Some(at(2)));
    shelf.check(STORE, WINDOW).expect("sound");
}

#[test]
fn only_what_is_claimed_and_under_way_is_live() {
    use TaskState as State;
    let [shelf, _] = shelves(&[claim(1, 1, 2)]);
    let task = shelf.get(RegionId(1)).expect("known");
    let states = [
        (State::Idle, false),
        (State::Ready, true),
        (State::Blocked, true),
        (State::Waiting, true),
        (State::Confirmed, true),
        (State::Reading, true),
        (State::Proven, false),
    ];
    for (state, live) in states {
        for claimed in [true, false] {
            let task = Task {
                state,
                claimed,
                ..task
            };
            assert_eq!(task.is_live(), live && claimed);
        }
    }
}
