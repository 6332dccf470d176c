//! *Clean end*: no store stays suspended for longer than one lease after our
//! last UpdateLease reached it.

use std::time::Duration;

use super::{Claimed, Violation};
use crate::sim::model::Cluster;

const NAME: &str = "clean end";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let Some(lease) = claimed.lease else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for stream in cluster.history().streams.values() {
        let long = stream
            .updates
            .iter()
            .find(|update| Duration::from_secs(update.seconds) > lease);
        if let Some(update) = long {
            let message = format!(
                "store {} was asked at {} for {} s, more than the lease of {lease:?}",
                stream.store, update.at, update.seconds
            );
            found.push(Violation::new(NAME, message));
        }
        let late = stream.finish.and_then(|(finished, _)| {
            let mut updates = stream.updates.iter();
            updates.find(|update| update.at > finished)
        });
        if let Some(update) = late {
            let message = format!("store {} was leased anew at {}", stream.store, update.at);
            found.push(Violation::new(NAME, message));
        }
    }
    found
}
