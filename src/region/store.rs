use std::collections::BTreeMap;

use super::StoreId;

/// What PD says of a store's life; `metapb.StoreState`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StoreState {
    /// Serving.
    #[default]
    Up,
    /// Being removed; still serves and leads regions.
    Offline,
    /// Gone for good.
    Tombstone,
}

/// A store as PD lists it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Store {
    /// The id.
    pub id: StoreId,
    /// Where its gRPC service listens, `host:port`.
    pub address: String,
    /// What PD says of its life.
    pub state: StoreState,
    /// Its version as PD knows it, such as `8.5.2`.
    pub version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Unix time of the last heartbeat that PD saw, in nanoseconds; 0 when PD
    /// does not tell.
    pub last_heartbeat_ns: i64,
}

impl Store {
    /// Returns whether the label `engine` marks a TiFlash store (`tiflash`,
    /// `tiflash_compute`), which has no Backup service and leads nothing. The
    /// label's key and value are compared without regard to case.
    pub fn is_tiflash(&self) -> bool {
        self.labels.iter().any(|(key, value)| {
            key.eq_ignore_ascii_case("engine")
                && (value.eq_ignore_ascii_case("tiflash")
                    || value.eq_ignore_ascii_case("tiflash_compute"))
        })
    }

    /// Returns whether the store has to be suspended for a hold: all but
    /// tombstones and TiFlash stores, also those that are offline or down.
    pub fn takes_part(&self) -> bool {
        self.state != StoreState::Tombstone && !self.is_tiflash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(key: &str, value: &str) -> Store {
        Store {
            labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
            ..Store::default()
        }
    }

    #[test]
    fn r17_only_tombstones_and_tiflash_are_left_out() {
        assert!(Store::default().takes_part());
        assert!(labelled("zone", "tiflash").takes_part());
        assert!(labelled("engine", "tikv").takes_part());
        for value in ["tiflash", "TiFlash", "tiflash_compute"] {
            assert!(!labelled("engine", value).takes_part(), "{value}");
        }
        let with_state = |state| Store {
            state,
            ..Store::default()
        };
        assert!(with_state(StoreState::Offline).takes_part());
        assert!(!with_state(StoreState::Tombstone).takes_part());
    }
}
