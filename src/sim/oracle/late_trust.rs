//! *No late trust*: while a hold goes on, each lease is trusted only until the
//! time that the client sent the last renewal of which it has the answer, plus
//! the seconds asked for, less the one that a store's whole seconds can take.

use super::{Claimed, Verdict, Violation};
use crate::sim::fault::FaultKind;
use crate::sim::model::{Cluster, StreamRecord};
use crate::time::Timestamp;

const NAME: &str = "no late trust";

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let history = cluster.history();
    let Some(hold) = &history.hold else {
        return Vec::new();
    };
    // A client that is paused says late that a hold is lost, and can do no
    // better.
    let paused = history
        .strikes
        .keys()
        .any(|(kind, _)| *kind == FaultKind::ClientPause);
    let end = match (history.finish_asked, history.lost) {
        (Some(asked), None) => asked,
        (Some(asked), Some(_)) if claimed.verdict == Verdict::Good => asked,
        (None, Some(lost)) | (Some(_), Some(lost)) if !paused => lost,
        _ => hold.at,
    };
    let mut found = Vec::new();
    for (store, call) in &hold.streams {
        let Some(stream) = history.streams.get(call) else {
            continue;
        };
        if let Some((until, now)) = trusted_too_long(stream, hold.at, end) {
            let message = format!(
                "the lease of store {store} was trusted at {now}, and what was known of it ended at {until}"
            );
            found.push(Violation::new(NAME, message));
        }
    }
    found
}

/// Returns the first instant from `begin` to `end` at which nothing known
/// justified the trust, after the instant at which that ended.
fn trusted_too_long(
    stream: &StreamRecord,
    begin: Timestamp,
    end: Timestamp,
) -> Option<(Timestamp, Timestamp)> {
    let mut until = Timestamp::ZERO;
    let answers = stream.answers.iter().zip(&stream.sent).zip(&stream.updates);
    for ((&(answered, _), &sent), update) in answers {
        if answered > end {
            break;
        }
        if answered > begin && until < answered.max(begin) {
            return Some((until, answered));
        }
        let seconds = update.seconds.saturating_sub(1);
        until = until.max(sent + std::time::Duration::from_secs(seconds));
    }
    (until < end).then_some((until, end))
}
