//! *The run ends as it should*: once faults have stopped, and with time enough
//! left, there is a hold, and a hold that begins then is kept.

use std::time::Duration;

use super::{Claimed, Verdict, Violation};
use crate::error::ErrorKind;
use crate::sim::fault::FaultKind;
use crate::sim::model::Cluster;
use crate::time::Timestamp;

const NAME: &str = "the run ends as it should";

/// What faults leave behind is over this long after they stopped, at the most:
/// dead streams, late messages, a slow apply, waits that hang.
const AFTERMATH: Duration = Duration::from_secs(100);

pub(super) fn check(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let history = cluster.history();
    let (Some(failed), Some(active)) = (claimed.failed, history.active) else {
        return Vec::new();
    };
    let paused = history
        .strikes
        .keys()
        .any(|(kind, _)| *kind == FaultKind::ClientPause);
    if cluster.has_gone_store() || paused {
        return Vec::new();
    }
    let plan = cluster.plan();
    let quiet = if plan.strikes.is_empty() && plan.aims.is_empty() {
        active.start
    } else {
        let Some(stopped) = history.stopped else {
            return Vec::new();
        };
        // Regions without a leader find one in some rounds of election.
        stopped + AFTERMATH + plan.timing.election_timeout * 10
    };
    let message = match claimed.verdict {
        Verdict::Good => return Vec::new(),
        Verdict::NotHeld => without_hold(claimed, failed, quiet, active.start),
        Verdict::NotGood => history.hold.as_ref().and_then(|hold| {
            (hold.at >= quiet && failed != ErrorKind::LockLost).then(|| {
                format!(
                    "the hold began at {}, when nothing had gone wrong since {quiet}, and ended with {failed}",
                    hold.at
                )
            })
        }),
    };
    let violation = message.map(|message| Violation::new(NAME, message));
    violation.into_iter().collect()
}

/// Time alone is no reason when there was enough of it, with nothing wrong.
fn without_hold(
    claimed: &Claimed,
    failed: ErrorKind,
    quiet: Timestamp,
    start: Timestamp,
) -> Option<String> {
    let deadline = start + claimed.prepare_timeout?;
    let in_vain = matches!(failed, ErrorKind::PrepareTimeout | ErrorKind::Unreachable);
    (in_vain && quiet < deadline).then(|| {
        format!(
            "there was no hold until {deadline} ({failed}), and nothing was wrong since {quiet}"
        )
    })
}
