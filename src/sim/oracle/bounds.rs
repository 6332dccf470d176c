//! *Bounded window*: no more regions in flight at a store than the window, none
//! twice. *No forbidden target*: no stream to store 0, to a tombstone or to
//! TiFlash.

use super::{Claimed, Violation};
use crate::sim::model::Cluster;

const WINDOW: &str = "bounded window";
const TARGET: &str = "no forbidden target";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let history = cluster.history();
    let mut found: Vec<Violation> = history
        .forbidden
        .iter()
        .map(|store| Violation::new(TARGET, format!("a stream was opened to store {store}")))
        .collect();
    for stream in history.streams.values() {
        let store = stream.store;
        if let Some(window) = claimed.window
            && stream.most_waiting > u64::from(window)
        {
            let most = stream.most_waiting;
            let message = format!("store {store} had {most} regions in flight, window {window}");
            found.push(Violation::new(WINDOW, message));
        }
        if let Some(region) = stream.asked_twice {
            let message = format!("store {store} was asked twice at once for region {region}");
            found.push(Violation::new(WINDOW, message));
        }
    }
    found
}
