use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Shelf, Slot};
use crate::region::{RegionId, StoreId};

/// Returns the tasks of all shelves in the order of their start keys, so that
/// neighbors follow on each other whichever store has them.
pub(in crate::machine) fn sweep(
    shelves: &BTreeMap<StoreId, Shelf>,
) -> impl Iterator<Item = (StoreId, &Shelf, Slot)> + '_ {
    let mut heads = BinaryHeap::new();
    let mut sources: Vec<Source<'_>> = Vec::new();
    for (store, shelf) in shelves {
        for slots in [
            Box::new(shelf.sorted_slots()) as Slots<'_>,
            Box::new(shelf.late_slots()),
        ] {
            sources.push(Source {
                store: *store,
                shelf,
                slots,
            });
            push_next(&mut heads, &mut sources, None);
        }
    }
    std::iter::from_fn(move || {
        let Reverse((_, store, at, slot)) = heads.pop()?;
        push_next(&mut heads, &mut sources, Some(at));
        let source: &Source<'_> = sources.get(at)?;
        Some((store, source.shelf, slot))
    })
}

type Slots<'a> = Box<dyn Iterator<Item = Slot> + 'a>;
/// Ordered by the place of the task, which does not depend on where it lies.
type Heads<'a> = BinaryHeap<Reverse<((&'a [u8], RegionId), StoreId, usize, Slot)>>;

/// The slots of one shelf that are in order.
struct Source<'a> {
    store: StoreId,
    shelf: &'a Shelf,
    slots: Slots<'a>,
}

/// Puts the next slot of a source (the last one by default) among the heads.
fn push_next<'a>(heads: &mut Heads<'a>, sources: &mut [Source<'a>], at: Option<usize>) {
    let at = at.unwrap_or(sources.len().saturating_sub(1));
    let Some(source) = sources.get_mut(at) else {
        return;
    };
    if let Some(slot) = source.slots.next() {
        let place = source.shelf.place(slot);
        heads.push(Reverse((place, source.store, at, slot)));
    }
}
