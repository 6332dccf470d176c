//! The laws of the set, as properties against the model.
//!
//! A failing case is shrunk and shown; `PROPTEST_RNG_SEED=<number>` fixes the
//! seed of a run, and what once failed is replayed from `proptest-regressions`.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use proptest::prelude::*;

use super::KeyRangeSet;
use super::model::{CELLS, Model, Span, WHOLE, probes};
use crate::range::{EndKey, KeyRange};

/// One change of a set.
#[derive(Clone, Debug)]
enum Change {
    Insert(Span),
    InsertRun(Vec<Span>),
    Remove(Span),
    Clear,
}

/// Draws a number from `from..=to`, more often near the two ends.
fn near_edges(from: usize, to: usize) -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(from),
        1 => Just(to),
        1 => Just((from + 1).min(to)),
        1 => Just(to.saturating_sub(1).max(from)),
        4 => from..=to,
    ]
}

fn span() -> impl Strategy<Value = Span> {
    near_edges(0, CELLS - 1)
        .prop_flat_map(|from| near_edges(from + 1, CELLS).prop_map(move |to| Span { from, to }))
}

/// A short span, so that sets of many separate ranges arise.
fn short_span() -> impl Strategy<Value = Span> {
    near_edges(0, CELLS - 1).prop_map(|from| Span { from, to: from + 1 })
}

/// A run as callers have it (ascending, mostly neighbours), or one that
/// disregards what a run should be.
fn run() -> impl Strategy<Value = Vec<Span>> {
    let steps = prop::collection::vec(
        (prop_oneof![4 => Just(0), 1 => 1..3_usize], 1..3_usize),
        0..6,
    );
    let ascending = (0..CELLS, steps).prop_map(|(mut from, steps)| {
        let mut spans = Vec::new();
        for (skipped, length) in steps {
            from += skipped;
            if from >= CELLS {
                break;
            }
            let to = (from + length).min(CELLS);
            spans.push(Span { from, to });
            from = to;
        }
        spans
    });
    prop_oneof![2 => ascending, 1 => prop::collection::vec(span(), 0..6)]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => short_span().prop_map(Change::Insert),
        4 => span().prop_map(Change::Insert),
        3 => run().prop_map(Change::InsertRun),
        3 => short_span().prop_map(Change::Remove),
        2 => span().prop_map(Change::Remove),
        1 => Just(Change::Clear),
    ]
}

/// Applies a change to both; the set must tell truly whether anything changed.
fn apply(change: &Change, set: &mut KeyRangeSet, model: &mut Model) {
    let before = model.clone();
    let said = match change {
        Change::Insert(span) => {
            model.insert(*span);
            set.insert(&span.range())
        }
        Change::InsertRun(spans) => {
            spans.iter().for_each(|&span| model.insert(span));
            let ranges: Vec<_> = spans.iter().map(|span| span.range()).collect();
            set.insert_run(&ranges)
        }
        Change::Remove(span) => {
            model.remove(*span);
            set.remove(&span.range())
        }
        Change::Clear => {
            *model = Model::default();
            set.clear();
            return;
        }
    };
    assert_eq!(
        said,
        before != *model,
        "said whether {change:?} changed the set"
    );
}

/// Returns a set and the model of the same keys.
fn any_set() -> impl Strategy<Value = (KeyRangeSet, Model)> {
    prop::collection::vec(change(), 0..24).prop_map(|changes| {
        let mut set = KeyRangeSet::new();
        let mut model = Model::default();
        for change in &changes {
            apply(change, &mut set, &mut model);
        }
        (set, model)
    })
}

/// Checks that no two neighbours of `set` overlap or touch, and that they are
/// in order.
fn check_canonical(set: &KeyRangeSet) {
    let ranges: Vec<_> = set.iter().collect();
    assert_eq!(ranges.len(), set.len());
    for pair in ranges.windows(2) {
        let end = pair[0].end().as_key().expect("only the last has no end");
        assert!(end < pair[1].start(), "{pair:?} touch");
    }
}

/// Checks that what is covered and the gaps tile `within` exactly: put in
/// order, each begins where the one before it ends.
fn check_tiling(set: &KeyRangeSet, within: &KeyRange) {
    let mut tiles: Vec<_> = set.intersections(within).chain(set.gaps(within)).collect();
    tiles.sort();
    assert_eq!(tiles.first().map(KeyRange::start), Some(within.start()));
    assert_eq!(tiles.last().map(KeyRange::end), Some(within.end()));
    for pair in tiles.windows(2) {
        assert_eq!(pair[0].end(), &EndKey::Bounded(pair[1].start().clone()));
    }
    for gap in set.gaps(within) {
        assert!(!set.overlaps(&gap), "a gap holds a covered key");
    }
    for part in set.intersections(within) {
        assert!(set.covers(&part), "a covered part has a gap");
    }
}

/// Checks that every question about `span` gets the model's answer.
fn check_questions(set: &KeyRangeSet, model: &Model, span: Span) {
    let within = span.range();
    let gaps = model.runs(span, false);
    assert_eq!(set.covers(&within), model.covers(span), "covers {span:?}");
    assert_eq!(
        set.overlaps(&within),
        model.overlaps(span),
        "overlaps {span:?}"
    );
    assert_eq!(
        set.first_gap(&within).as_ref(),
        gaps.first(),
        "first gap in {span:?}"
    );
    assert_eq!(
        set.gaps(&within).collect::<Vec<_>>(),
        gaps,
        "gaps in {span:?}"
    );
    assert_eq!(
        set.intersections(&within).collect::<Vec<_>>(),
        model.runs(span, true),
        "covered parts of {span:?}"
    );
}

/// Checks that `set` holds the keys of `model` and nothing else.
fn check_same(set: &KeyRangeSet, model: &Model) {
    let ranges = model.runs(WHOLE, true);
    assert_eq!(set.iter().collect::<Vec<_>>(), ranges);
    assert_eq!(set.into_iter().rev().collect::<Vec<_>>(), {
        let mut reversed = ranges.clone();
        reversed.reverse();
        reversed
    });
    assert_eq!(set.len(), ranges.len());
    assert_eq!(set.is_empty(), ranges.is_empty());
    assert_eq!(set.is_whole(), model.covers(WHOLE));
    for key in probes() {
        assert_eq!(
            set.contains_key(&key),
            model.contains_key(&key),
            "{}",
            key.reveal()
        );
    }
}

fn hash(set: &KeyRangeSet) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(set)
}

proptest! {
    #[test]
    fn any_changes_leave_the_set_like_the_model(changes in prop::collection::vec(change(), 0..32)) {
        let mut set = KeyRangeSet::new();
        let mut model = Model::default();
        for change in &changes {
            apply(change, &mut set, &mut model);
            check_canonical(&set);
            check_same(&set, &model);
        }
    }

    #[test]
    fn covered_and_gaps_tile_the_space((set, _) in any_set(), within in span()) {
        check_tiling(&set, &within.range());
        check_tiling(&set, &KeyRange::whole());
    }

    #[test]
    fn questions_get_the_answers_of_the_model((set, model) in any_set(), within in span()) {
        check_questions(&set, &model, within);
        check_questions(&set, &model, WHOLE);
    }

    #[test]
    fn insert_is_idempotent((set, _) in any_set(), span in span()) {
        let mut once = set;
        once.insert(&span.range());
        let mut twice = once.clone();
        prop_assert!(!twice.insert(&span.range()), "the second time nothing is new");
        prop_assert_eq!(&once, &twice);
        prop_assert!(once.covers(&span.range()));
    }

    #[test]
    fn the_order_of_inserts_does_not_matter(
        (spans, shuffled) in prop::collection::vec(prop_oneof![short_span(), span()], 0..24)
            .prop_flat_map(|spans| (Just(spans.clone()), Just(spans).prop_shuffle()))
    ) {
        let set: KeyRangeSet = spans.into_iter().map(Span::range).collect();
        let other: KeyRangeSet = shuffled.into_iter().map(Span::range).collect();
        prop_assert_eq!(hash(&set), hash(&other));
        prop_assert_eq!(set, other);
    }

    #[test]
    fn remove_takes_away_that_and_only_that((set, model) in any_set(), span in span()) {
        let mut left = set.clone();
        prop_assert_eq!(left.remove(&span.range()), set.overlaps(&span.range()));
        prop_assert!(!left.overlaps(&span.range()));
        let removed: Vec<_> = set.intersections(&span.range()).collect();
        left.extend(&removed);
        prop_assert_eq!(&left, &set, "putting back what was there restores the set");
        check_same(&left, &model);
    }

    #[test]
    fn a_run_is_worth_its_inserts((set, _) in any_set(), run in run()) {
        let ranges: Vec<_> = run.into_iter().map(Span::range).collect();
        let mut at_once = set.clone();
        at_once.insert_run(&ranges);
        let mut one_by_one = set;
        for range in &ranges {
            one_by_one.insert(range);
        }
        prop_assert_eq!(at_once, one_by_one);
    }
}

/// Every set over six cells, changed by every span of them: the smallest cases,
/// all of them.
#[test]
fn all_small_sets_obey_all_laws() {
    const SMALL: usize = 6;
    // The last cells of the grid as well, so that the unbounded end takes part.
    for offset in [0, CELLS - SMALL] {
        let place = |span: Span| Span {
            from: span.from + offset,
            to: span.to + offset,
        };
        for bits in 0..1_u32 << SMALL {
            let mut set = KeyRangeSet::new();
            let mut model = Model::default();
            for cell in (0..SMALL).filter(|cell| bits >> cell & 1 == 1) {
                let span = place(Span {
                    from: cell,
                    to: cell + 1,
                });
                apply(&Change::Insert(span), &mut set, &mut model);
            }
            for span in Span::all(SMALL).map(place) {
                check_questions(&set, &model, span);
                check_tiling(&set, &span.range());
                for change in [Change::Insert(span), Change::Remove(span)] {
                    let (mut set, mut model) = (set.clone(), model.clone());
                    apply(&change, &mut set, &mut model);
                    check_canonical(&set);
                    check_same(&set, &model);
                }
            }
        }
    }
}
