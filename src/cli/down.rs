use std::time::Duration;

use super::args::show_time;
use crate::region::Store;

/// PD hears of a store every ten seconds; after this time without a word it is
/// as good as gone.
const DOWN_AFTER_S: u64 = 60;

/// Returns how long ago PD heard of a store, in seconds.
pub(super) fn heartbeat_age(store: &Store) -> Option<u64> {
    if store.last_heartbeat_ns <= 0 {
        return None;
    }
    let now = jiff::Timestamp::now().as_nanosecond();
    let age = now - i128::from(store.last_heartbeat_ns);
    Some(u64::try_from(age / 1_000_000_000).unwrap_or(0))
}

/// Returns what to add when a store cannot be reached that PD has not heard of
/// for long; nothing otherwise.
pub(super) fn down_hint(store: &Store) -> String {
    heartbeat_age(store)
        .filter(|age| *age >= DOWN_AFTER_S)
        .map_or(String::new(), |age| {
            let age = show_time(Duration::from_secs(age));
            format!("; it is down: PD has not heard of it for {age}")
        })
}
