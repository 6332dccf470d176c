//! *Bounded window*: no more regions in flight at a store than the window, none
//! twice.

use super::{Claimed, Violation};
use crate::sim::model::Cluster;

const NAME: &str = "bounded window";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let mut found = Vec::new();
    for stream in cluster.history().streams.values() {
        let store = stream.store;
        if let Some(window) = claimed.window
            && stream.most_waiting > u64::from(window)
        {
            let most = stream.most_waiting;
            let message = format!("store {store} had {most} regions in flight, window {window}");
            found.push(Violation::new(NAME, message));
        }
        if let Some(region) = stream.asked_twice {
            let message = format!("store {store} was asked twice at once for region {region}");
            found.push(Violation::new(NAME, message));
        }
    }
    found
}
