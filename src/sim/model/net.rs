use std::collections::BTreeSet;

use crate::region::StoreId;

/// Which stores cannot reach each other. Clients reach all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Net {
    cut_off: BTreeSet<StoreId>,
    cut_links: BTreeSet<(StoreId, StoreId)>,
}

impl Net {
    pub(super) fn connected(&self, a: StoreId, b: StoreId) -> bool {
        a == b
            || !(self.cut_off.contains(&a)
                || self.cut_off.contains(&b)
                || self.cut_links.contains(&(a.min(b), a.max(b))))
    }

    pub(super) fn cut_off(&mut self, store: StoreId) -> bool {
        self.cut_off.insert(store)
    }

    pub(super) fn join(&mut self, store: StoreId) -> bool {
        self.cut_off.remove(&store)
    }

    pub(super) fn cut(&mut self, a: StoreId, b: StoreId) -> bool {
        a != b && self.cut_links.insert((a.min(b), a.max(b)))
    }

    pub(super) fn mend(&mut self, a: StoreId, b: StoreId) -> bool {
        self.cut_links.remove(&(a.min(b), a.max(b)))
    }

    pub(super) fn mend_all(&mut self) {
        self.cut_off.clear();
        self.cut_links.clear();
    }
}
