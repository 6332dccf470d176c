use super::books::{Ask, Next, Shelf};
use super::{Slot, TaskState};
use crate::machine::normal::Normalizer;

impl Shelf {
    pub(in crate::machine) fn normalize(&mut self, to: &mut Normalizer) {
        self.sort();
        let asked = std::mem::take(&mut self.asked);
        self.asked = asked
            .into_iter()
            .filter(|(sent, slot)| self.is_asked(*slot, *sent))
            .collect();
        let Self {
            table,
            asks,
            orphans: _,
            listed,
            ready,
            confirmed,
            asked,
            waits: _,
            reads: _,
            last_proof,
            pace: _,
            next,
        } = self;
        *next = Next::default();
        let in_state = |slot: &Slot, state| table.marks(*slot).state() == Some(state);
        ready.retain(|slot| in_state(slot, TaskState::Ready));
        confirmed.retain(|slot| in_state(slot, TaskState::Confirmed));
        for (sent, _) in asked {
            to.instant(sent);
        }
        for (slot, ask) in asks {
            let Ask { first, last, read } = ask;
            to.forget(first);
            if in_state(slot, TaskState::Waiting) || in_state(slot, TaskState::Blocked) {
                to.instant(last);
            } else {
                to.forget(last);
            }
            if let Some(request) = read {
                to.number(request);
            }
        }
        if let Some(number) = listed {
            to.past(number);
        }
        if let Some(at) = last_proof {
            to.forget(at);
        }
    }
}
