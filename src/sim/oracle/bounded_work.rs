//! *Bounded work*: what is asked grows with the time and the attempts that a run
//! takes, however much goes wrong, and never by itself.

use super::{Claimed, Violation};
use crate::sim::model::Cluster;

const NAME: &str = "bounded work";

/// What one attempt may ask of each region, store or page without any wait.
const PER_ATTEMPT: u64 = 24;
/// What may be asked of each in each second beyond that.
const PER_SECOND: u64 = 3;

pub(super) fn check(cluster: &Cluster, _claimed: &Claimed) -> Vec<Violation> {
    let history = cluster.history();
    let Some(active) = history.active else {
        return Vec::new();
    };
    let work = &history.work;
    let lasted = active.end.saturating_duration_since(active.start).as_secs();
    let attempts = work.streams.values().copied().max().unwrap_or(0) + 1;
    let most = attempts * PER_ATTEMPT + lasted * PER_SECOND;
    // Each region that fails can ask for a look at a store.
    let looks = most * (1 + work.waits.len() as u64);
    let waits = work.waits.iter().map(|(id, &n)| (id.0, n));
    let reads = work.reads.iter().map(|(id, &n)| (id.0, n));
    let listings = work.listings.iter().map(|(id, &n)| (id.0, n));
    let waits = waits.map(|(id, count)| (format!("waits for region {id}"), count, most));
    let reads = reads.map(|(id, count)| (format!("reads of region {id}"), count, most));
    let listings = listings.map(|(id, count)| (format!("listings of store {id}"), count, looks));
    waits
        .chain(reads)
        .chain(listings)
        .chain([
            ("store lists".to_owned(), work.store_lists, most),
            ("pages of regions".to_owned(), work.scans, looks),
        ])
        .filter(|&(_, count, most)| count > most)
        .map(|(what, count, most)| {
            let message = format!(
                "{count} {what} in {lasted} s and {attempts} attempts, at the most {most} are due"
            );
            Violation::new(NAME, message)
        })
        .collect()
}
