//! A shelf against a plain map that is obviously right.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Shelf, sweep};
use crate::machine::RequestId;
use crate::range::{EndKey, Key, KeyRange};
use crate::region::{Claim, Peer, PeerId, PeerRole, Region, RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

const STORE: StoreId = StoreId(1);

/// What is done to a shelf.
#[derive(Clone, Debug)]
enum Step {
    /// A listing, which may break off before its end.
    List {
        claims: Vec<Claim>,
        is_complete: bool,
    },
    /// A region failed and is taken off.
    Remove(RegionId),
    /// A region fails while a listing is under way.
    ListAndRemove(Vec<Claim>, RegionId),
    MakeProven(RegionId),
}

/// What the plain map knows of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Known {
    claim: Claim,
    is_claimed: bool,
    is_proven: bool,
}

#[derive(Default)]
struct Model(BTreeMap<RegionId, Known>);

impl Model {
    fn end_listing(&mut self, claims: &[Claim]) {
        for known in self.0.values_mut() {
            known.is_claimed = false;
        }
        for claim in claims {
            let before = self.0.get(&claim.region.id);
            let is_same = before.is_some_and(|known| known.claim.region == claim.region);
            let is_proven = is_same && before.is_some_and(|known| known.is_proven);
            let known = Known {
                claim: claim.clone(),
                is_claimed: true,
                is_proven,
            };
            self.0.insert(claim.region.id, known);
        }
        self.0
            .retain(|_, known| known.is_claimed || known.is_proven);
    }
}

fn claim() -> impl Strategy<Value = Claim> {
    (1_u64..12, 0_u8..9, 1_u8..4, 1_u64..3, any::<bool>()).prop_map(
        |(id, start, len, version, has_pending_admin)| {
            let end = match start + len {
                end if end >= 9 => EndKey::Unbounded,
                end => EndKey::Bounded(Key::new(vec![end])),
            };
            // A large id now and then, which takes eight bytes.
            let id = if id == 11 { 1 << 40 } else { id };
            let range = KeyRange::new(Key::new(vec![start]), end).expect("not empty");
            let peer = Peer {
                id: PeerId(id * 10),
                store_id: STORE,
                role: PeerRole::Voter,
            };
            let region = Region {
                id: RegionId(id),
                range,
                epoch: RegionEpoch {
                    conf_ver: 1,
                    version,
                },
                peers: vec![peer],
            };
            Claim {
                region,
                has_pending_admin,
            }
        },
    )
}

/// Claims of one listing: an id comes once, and mostly they are disjoint.
fn claims() -> impl Strategy<Value = Vec<Claim>> {
    prop::collection::vec(claim(), 0..8).prop_map(|claims| {
        let by_id: BTreeMap<RegionId, Claim> = claims
            .into_iter()
            .map(|claim| (claim.region.id, claim))
            .collect();
        by_id.into_values().collect()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let id = (1_u64..12).prop_map(RegionId);
    prop_oneof![
        4 => (claims(), prop::bool::weighted(0.8))
            .prop_map(|(claims, is_complete)| Step::List { claims, is_complete }),
        2 => id.clone().prop_map(Step::Remove),
        1 => (claims(), id.clone()).prop_map(|(claims, id)| Step::ListAndRemove(claims, id)),
        2 => id.prop_map(Step::MakeProven),
    ]
}

/// Hands claims in as a listing does; returns those that have to be kept.
fn list(shelf: &mut Shelf, claims: &[Claim]) -> Vec<Claim> {
    let mut kept = Vec::new();
    for claim in claims {
        let peer_id = claim.region.peers[0].id;
        if !shelf.list(claim, peer_id, !claim.has_pending_admin) {
            kept.push(claim.clone());
        }
    }
    kept
}

fn end_listing(shelf: &mut Shelf, kept: &[Claim]) {
    shelf.end_listing(RequestId(1));
    for claim in kept {
        let peer_id = claim.region.peers[0].id;
        let slot = shelf
            .matching(claim)
            .unwrap_or_else(|| shelf.put(claim, peer_id));
        shelf.claim(slot, peer_id, !claim.has_pending_admin);
    }
    for gone in shelf.unlisted() {
        shelf.remove(gone.id);
    }
    shelf.tidy();
}

fn apply(shelf: &mut Shelf, model: &mut Model, step: &Step) {
    match step {
        Step::List {
            claims,
            is_complete,
        } => {
            let kept = list(shelf, claims);
            if *is_complete {
                end_listing(shelf, &kept);
                model.end_listing(claims);
            } else {
                shelf.forget_listing();
            }
        }
        Step::Remove(id) => {
            shelf.remove(*id);
            model.0.remove(id);
        }
        Step::ListAndRemove(claims, id) => {
            let kept = list(shelf, claims);
            shelf.remove(*id);
            model.0.remove(id);
            end_listing(shelf, &kept);
            model.end_listing(claims);
        }
        Step::MakeProven(id) => {
            if let Some(task) = shelf.get(*id) {
                shelf.make_proven(task.slot, Timestamp::ZERO);
            }
            if let Some(known) = model.0.get_mut(id) {
                known.is_proven = true;
            }
        }
    }
}

fn is_same(shelf: &Shelf, model: &Model) -> Result<(), TestCaseError> {
    shelf.check(STORE, 0).map_err(TestCaseError::fail)?;
    prop_assert_eq!(shelf.len(), model.0.len());
    prop_assert_eq!(shelf.iter().count(), model.0.len());
    for (id, known) in &model.0 {
        let task = shelf.get(*id);
        let task = task.ok_or_else(|| TestCaseError::fail(format!("region {id} is missing")))?;
        prop_assert_eq!(task.epoch, known.claim.region.epoch);
        prop_assert_eq!(task.peer_id, known.claim.region.peers[0].id);
        prop_assert_eq!(shelf.range(task.slot), known.claim.region.range.clone());
        prop_assert_eq!(task.claimed, known.is_claimed);
        prop_assert_eq!(
            task.clean,
            known.is_claimed && !known.claim.has_pending_admin
        );
        let is_proven = task.state == super::TaskState::Proven;
        prop_assert_eq!(is_proven, known.is_proven);
    }
    Ok(())
}

/// Claims that do not overlap each other are found by whatever they overlap.
fn overlaps_are_found(shelf: &Shelf, model: &Model) -> Result<(), TestCaseError> {
    let claimed: Vec<&KeyRange> = model
        .0
        .values()
        .filter(|known| known.is_claimed)
        .map(|known| &known.claim.region.range)
        .collect();
    let overlap = claimed
        .iter()
        .enumerate()
        .any(|(at, one)| claimed[..at].iter().any(|other| one.overlaps(other)));
    if overlap {
        return Ok(());
    }
    for start in 0..9 {
        let range = KeyRange::new(
            Key::new(vec![start]),
            EndKey::Bounded(Key::new(vec![start + 2])),
        );
        let range = range.expect("not empty");
        let mut found: Vec<RegionId> = shelf
            .overlapping(&range)
            .iter()
            .filter(|task| task.claimed)
            .map(|task| task.id)
            .collect();
        found.sort_unstable();
        let expected: Vec<RegionId> = model
            .0
            .iter()
            .filter(|(_, known)| known.is_claimed && known.claim.region.range.overlaps(&range))
            .map(|(id, _)| *id)
            .collect();
        prop_assert_eq!(found, expected);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_shelf_is_a_map_of_regions(
        first in prop::collection::vec(claim(), 0..10),
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let mut shelf = Shelf::default();
        let mut model = Model::default();
        // The first listing may name a region twice; the last word counts.
        for claim in &first {
            shelf.collect(claim, claim.region.peers[0].id);
        }
        shelf.seal();
        let mut clean = first;
        clean.iter_mut().for_each(|claim| claim.has_pending_admin = true);
        model.end_listing(&clean);
        is_same(&shelf, &model)?;
        for step in &steps {
            apply(&mut shelf, &mut model, step);
            is_same(&shelf, &model)?;
            overlaps_are_found(&shelf, &model)?;
        }
    }

    #[test]
    fn a_sweep_goes_through_everything_in_key_order(
        shelves in prop::collection::vec(
            (prop::collection::vec(claim(), 0..10), prop::collection::vec(step(), 0..6)),
            0..4,
        ),
    ) {
        let shelves: BTreeMap<StoreId, Shelf> = shelves
            .iter()
            .zip(1..)
            .map(|((first, steps), store)| {
                let mut shelf = Shelf::default();
                for claim in first {
                    shelf.collect(claim, claim.region.peers[0].id);
                }
                shelf.seal();
                for step in steps {
                    apply(&mut shelf, &mut Model::default(), step);
                }
                (StoreId(store), shelf)
            })
            .collect();
        let swept: Vec<_> = sweep(&shelves)
            .map(|(store, shelf, slot)| (shelf.range(slot).start().clone(), store, slot))
            .collect();
        prop_assert!(swept.is_sorted_by_key(|(start, _, _)| start.clone()));
        let all: usize = shelves.values().map(Shelf::len).sum();
        prop_assert_eq!(swept.len(), all);
    }
}
