use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::address::Address;
use super::dial::Dialer;
use super::pd::lock;
use super::peer::Peer;
use super::reads::Manner;
use crate::error::{Failure, FailureKind};
use crate::region::{Store, StoreId};

/// The stores that were talked to, each at the address it had last.
#[derive(Debug)]
pub(super) struct Stores {
    dialer: Dialer,
    known: Mutex<BTreeMap<StoreId, Known>>,
}

/// What is known of a store's server.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) peer: Arc<Peer>,
    /// How it wants to be read from.
    pub(super) manner: Arc<Manner>,
}

impl Stores {
    pub(super) const fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            known: Mutex::new(BTreeMap::new()),
        }
    }

    /// Returns the store's server; a new one when its address has changed.
    pub(super) fn get(&self, store: &Store) -> Result<Known, Failure> {
        let (_, address) = Address::parse(&store.address).map_err(|wrong| {
            Failure::new(
                FailureKind::Unavailable,
                format!(
                    "the address of store {} cannot be dialled: {wrong}",
                    store.id
                ),
            )
        })?;
        let mut known = lock(&self.known);
        match known.get(&store.id) {
            Some(found) if *found.peer.address() == address => Ok(found.clone()),
            _ => {
                let found = Known {
                    peer: Arc::new(Peer::store(address, self.dialer.clone())),
                    manner: Arc::new(Manner::default()),
                };
                known.insert(store.id, found.clone());
                Ok(found)
            }
        }
    }
}
