use std::ffi::OsString;

use crate::region::StoreId;

/// Returns what the command finds in its environment.
pub(crate) fn environment_of(
    cluster_id: u64,
    stores: &[(StoreId, String)],
    tso: Option<u64>,
    held_at: &str,
) -> Vec<(&'static str, Option<OsString>)> {
    let stores: Vec<String> = stores
        .iter()
        .map(|(id, address)| format!("{id}={address}"))
        .collect();
    vec![
        (
            "SNAPSHOT_PREPARE_CLUSTER_ID",
            Some(cluster_id.to_string().into()),
        ),
        ("SNAPSHOT_PREPARE_STORES", Some(stores.join(",").into())),
        // Taken out when unknown, lest an outer run's value be believed.
        (
            "SNAPSHOT_PREPARE_TSO",
            tso.map(|tso| tso.to_string().into()),
        ),
        ("SNAPSHOT_PREPARE_HELD_AT", Some(held_at.into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_timestamp_is_taken_out() {
        let stores = [
            (StoreId(1), "a:1".to_owned()),
            (StoreId(4), "b:2".to_owned()),
        ];
        let environment = environment_of(7, &stores, None, "2026-01-02T03:04:05.000Z");
        let value = |name: &str| {
            environment
                .iter()
                .find(|(other, _)| *other == name)
                .expect("set or taken out")
                .1
                .clone()
        };
        assert_eq!(value("SNAPSHOT_PREPARE_STORES"), Some("1=a:1,4=b:2".into()));
        assert_eq!(value("SNAPSHOT_PREPARE_TSO"), None);
    }
}
