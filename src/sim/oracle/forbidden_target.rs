//! *No forbidden target*: no call to store 0, to a tombstone, to TiFlash, or to a
//! store whose stream somebody else has taken; and no Finish to a store that is
//! to be left to the one who had its lease.

use std::collections::BTreeSet;

use super::{Claimed, Violation};
use crate::sim::model::Cluster;

const NAME: &str = "no forbidden target";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let forbidden = cluster.history().forbidden.iter();
    let mut found: Vec<Violation> = forbidden
        .map(|message| Violation::new(NAME, message.clone()))
        .collect();
    if claimed.leaves_foreign {
        found.extend(finished_for_others(cluster));
    }
    found
}

/// A first lease that was answered 'valid' was somebody else's: once that is
/// known, the store must not be told to end it.
fn finished_for_others(cluster: &Cluster) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let leased = |stream: &&crate::sim::model::StreamRecord| !stream.sent.is_empty();
    for stream in cluster.history().streams.values().filter(leased) {
        if !seen.insert(stream.store) {
            continue;
        }
        if let (Some(&(known, true)), Some(finish)) = (stream.answers.first(), stream.finish_sent)
            && known < finish
        {
            let message = format!(
                "store {} was leased by somebody else, known at {known}, and Finish was sent there at {finish}",
                stream.store
            );
            found.push(Violation::new(NAME, message));
        }
    }
    found
}
