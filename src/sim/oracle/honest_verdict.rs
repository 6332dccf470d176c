//! *Honest verdict*: a good verdict means that every lease was in force from the
//! deciding renewals until the end was asked for and beyond, until Finish, and
//! that nothing of the refused kind was proposed or newly committed meanwhile.

use super::{Claimed, Verdict, Violation};
use crate::sim::model::{Cluster, HoldMark};
use crate::time::Timestamp;

const NAME: &str = "honest verdict";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    if claimed.verdict != Verdict::Good {
        return Vec::new();
    }
    let history = cluster.history();
    let (Some(hold), Some(end)) = (&history.hold, history.finish_asked) else {
        return vec![Violation::new(
            NAME,
            "good without a hold, or without an end",
        )];
    };
    let mut found = Vec::new();
    for (&store, &renewed) in &hold.renewed {
        let stretch = history.suspended_at(store, renewed);
        if stretch.is_none_or(|stretch| stretch.end < end) {
            let message =
                format!("the lease of store {store} did not last from {renewed} to {end}");
            found.push(Violation::new(NAME, message));
        }
        let finished = hold.streams.get(&store).and_then(|call| {
            let stream = history.streams.get(call)?;
            stream.finish
        });
        if !finished.is_some_and(|(_, valid)| valid) {
            let message = format!("store {store} served no Finish of a lease in force");
            found.push(Violation::new(NAME, message));
        }
    }
    found.extend(changes(cluster, hold, end));
    found
}

/// Returns what was proposed or committed during the hold.
fn changes(cluster: &Cluster, hold: &HoldMark, end: Timestamp) -> Vec<Violation> {
    let Some(&begin) = hold.renewed.values().max() else {
        return Vec::new();
    };
    let within = |at: Timestamp| begin < at && at <= end;
    let mut found = Vec::new();
    for (id, command) in &cluster.history().commands {
        let did = if within(command.proposed) {
            "proposed"
        } else if command.committed.is_some_and(within) {
            "committed"
        } else {
            continue;
        };
        let message = format!(
            "the {} #{id} of region {} was {did} on store {} between {begin} and {end}",
            command.name, command.region, command.store
        );
        found.push(Violation::new(NAME, message));
    }
    found
}
