use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::Shelf;
use crate::machine::normal::Normalizer;
use crate::region::StoreId;
use crate::time::Timestamp;

/// The shelves of all stores.
///
/// Looking goes through the map that this derefs to. Whoever changes a shelf has
/// it noted as touched, so that an event costs what the stores that it concerns
/// cost, and not what all of them would.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::machine) struct Shelves {
    by_store: BTreeMap<StoreId, Shelf>,
    /// The stores whose shelves may have changed since they were settled.
    touched: BTreeSet<StoreId>,
    /// When the oldest wait in flight at a store was sent, as of then.
    oldest_waits: BTreeMap<StoreId, Timestamp>,
}

impl Shelves {
    pub(in crate::machine) fn new(by_store: BTreeMap<StoreId, Shelf>) -> Self {
        Self {
            touched: by_store.keys().copied().collect(),
            by_store,
            oldest_waits: BTreeMap::new(),
        }
    }

    pub(in crate::machine) fn get_mut(&mut self, store: StoreId) -> Option<&mut Shelf> {
        let shelf = self.by_store.get_mut(&store)?;
        self.touched.insert(store);
        Some(shelf)
    }

    /// Returns the shelf of a store, an empty one if there was none.
    pub(in crate::machine) fn of(&mut self, store: StoreId) -> &mut Shelf {
        self.touched.insert(store);
        self.by_store.entry(store).or_default()
    }

    pub(in crate::machine) fn values_mut(&mut self) -> impl Iterator<Item = &mut Shelf> {
        self.touched.extend(self.by_store.keys());
        self.by_store.values_mut()
    }

    #[cfg(feature = "arbitrary")]
    pub(in crate::machine) fn touch_all(&mut self) {
        self.touched.extend(self.by_store.keys());
    }

    /// Goes through the shelves that were touched since the last time.
    pub(in crate::machine) fn settle(&mut self, mut each: impl FnMut(StoreId, &mut Shelf)) {
        while let Some(store) = self.touched.pop_first() {
            let Some(shelf) = self.by_store.get_mut(&store) else {
                continue;
            };
            each(store, shelf);
            shelf.trim_asked();
            match shelf.oldest_wait() {
                Some(sent) => self.oldest_waits.insert(store, sent),
                None => self.oldest_waits.remove(&store),
            };
        }
    }

    /// Returns the stores with waits in flight, and when the oldest was sent, as
    /// of when their shelves were settled.
    pub(in crate::machine) fn oldest_waits(
        &self,
    ) -> impl Iterator<Item = (StoreId, Timestamp)> + '_ {
        self.oldest_waits
            .iter()
            .map(|(store, sent)| (*store, *sent))
    }

    pub(in crate::machine) fn normalize(&mut self, to: &mut Normalizer) {
        for shelf in self.values_mut() {
            shelf.normalize(to);
        }
        // Nothing is sent by this: it only finds the oldest waits anew.
        self.settle(|_, _| {});
    }

    /// Checks the shelves, and that nothing was left to be settled.
    pub(in crate::machine) fn check(&self, window: u32) -> Result<(), String> {
        for (store, shelf) in &self.by_store {
            shelf.check(*store, window)?;
            if self.oldest_waits.get(store).copied() != shelf.oldest_wait() {
                return Err(format!(
                    "store {store}: the index of the oldest waits is out of date"
                ));
            }
        }
        Ok(())
    }
}

impl Deref for Shelves {
    type Target = BTreeMap<StoreId, Shelf>;

    fn deref(&self) -> &Self::Target {
        &self.by_store
    }
}
