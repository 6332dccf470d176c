use std::time::Duration;

use super::asking::Asking;
use super::core::Core;
use super::follow_up::{FollowUp, Haste};
use super::normal::Normalizer;
use crate::range::KeyRange;
use crate::region::{RegionId, StoreId};
use crate::time::Timestamp;

/// With more than this in flight nobody is a straggler.
const STRAGGLERS_MAX: u64 = 16;

/// When the last few regions are looked at anew though their requests are not
/// overdue: a leader that was deposed may leave a request unanswered for long
/// after its successor could have answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Stragglers {
    due: Option<Timestamp>,
    /// The last pause before such a look; it grows like a backoff.
    pause: Duration,
}

impl Stragglers {
    pub(super) const fn due(&self) -> Option<Timestamp> {
        self.due
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self { due, pause: _ } = self;
        if let Some(due) = due {
            to.instant(due);
        }
    }
}

impl Asking {
    /// Notes whether only few requests are in flight and nothing else is to be
    /// done.
    pub(super) fn note_stragglers(&mut self, core: &Core) {
        let in_flight = self.in_flight_up_to(STRAGGLERS_MAX + 1);
        let is_quiet = in_flight > 0
            && in_flight <= STRAGGLERS_MAX
            && self.retry.active() == 0
            && !self.has_unsent();
        if !is_quiet {
            self.stragglers.due = None;
        } else if self.stragglers.due.is_none() {
            self.stragglers.pause = core.longer_pause(self.stragglers.pause, false);
            self.stragglers.due = Some(core.now + self.stragglers.pause);
        }
    }

    /// Lets the ranges of the stragglers be looked at; their requests go on.
    pub(super) fn expire_stragglers(&mut self, core: &mut Core) {
        if self.stragglers.due.is_none_or(|due| due > core.now) {
            return;
        }
        self.stragglers.due = None;
        for (store, id, range) in self.asked_ranges() {
            let text = format!("region {id} at store {store}: the answer is slow in coming");
            let follow_up = FollowUp::at(store, Haste::Soon).about(id, store);
            self.fail(core, &range, &text, follow_up);
        }
    }

    fn asked_ranges(&self) -> Vec<(StoreId, RegionId, KeyRange)> {
        let mut found = Vec::new();
        for (store, shelf) in self.shelves.iter() {
            for slot in shelf.asked_slots() {
                if let Some(task) = shelf.task(slot)
                    && task.is_live()
                {
                    found.push((*store, task.id, shelf.range(slot)));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::machine::Config;
    use crate::machine::shelf::Shelf;

    /// Each of so many stores has one wait in flight.
    fn in_flight(stores: u64) -> Asking {
        let mut shelf = Shelf::default();
        shelf.waits = 1;
        let shelves = (1..=stores).map(|id| (StoreId(id), shelf.clone()));
        Asking::new(BTreeMap::from_iter(shelves))
    }

    #[test]
    fn a_few_requests_in_flight_are_stragglers_and_many_are_not() {
        for (stores, are_few) in [(0, false), (1, true), (16, true), (17, false), (40, false)] {
            let core = Core::new(Config::default(), Timestamp::ZERO);
            let mut asking = in_flight(stores);
            asking.note_stragglers(&core);
            assert_eq!(asking.stragglers.due().is_some(), are_few, "{stores}");
        }
    }
}
