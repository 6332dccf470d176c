//! Reading what `pd-ctl store` and `/pd/api/v1/stores` print.

use serde::Deserialize;

use super::LayoutError;
use super::dump::{check_count, parse};
use crate::region::{Store, StoreId, StoreState};

#[derive(Deserialize)]
struct StoresDump {
    count: Option<u64>,
    stores: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    store: Option<DumpedStore>,
}

#[derive(Deserialize)]
struct DumpedStore {
    id: Option<u64>,
    #[serde(default)]
    address: String,
    #[serde(default)]
    version: String,
    labels: Option<Vec<Label>>,
    state_name: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
}

/// Reads the stores, in order of their ids.
pub(super) fn read(text: &[u8]) -> Result<Vec<Store>, LayoutError> {
    let dump: StoresDump = parse(text)?;
    let Some(entries) = dump.stores else {
        return Err(LayoutError::WrongShape {
            what: "there is no list `stores` at the top".to_owned(),
        });
    };
    check_count("stores", dump.count, entries.len())?;
    let mut stores = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let missing = LayoutError::MissingId {
            what: "stores",
            index,
        };
        let dumped = entry.store.ok_or_else(|| missing.clone())?;
        let id = dumped.id.map(StoreId).ok_or(missing)?;
        stores.push(read_store(id, dumped)?);
    }
    stores.sort_by_key(|store| store.id);
    Ok(stores)
}

fn read_store(id: StoreId, dumped: DumpedStore) -> Result<Store, LayoutError> {
    let state = match dumped.state_name.as_deref() {
        // PD says these of stores whose state is still Up.
        None | Some("Up" | "Disconnected" | "Down") => StoreState::Up,
        Some("Offline") => StoreState::Offline,
        Some("Tombstone") => StoreState::Tombstone,
        Some(_) => {
            return Err(LayoutError::Store {
                store_id: id,
                problem: "its state is not known",
            });
        }
    };
    let labels = dumped.labels.unwrap_or_default();
    Ok(Store {
        id,
        address: dumped.address,
        state,
        version: dumped.version,
        labels: labels.into_iter().map(|l| (l.key, l.value)).collect(),
        last_heartbeat_ns: 0,
    })
}
