use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;

use crate::cluster::{Batches, ClusterClient};
use crate::error::{ErrorKind, Failure, FailureKind};
use crate::range::KeyRangeSet;
use crate::region::{RegionId, Store, StoreId};

/// What one store says of itself.
#[derive(Debug, Default)]
pub(super) struct StoreView {
    pub(super) leaders: u64,
    pub(super) pending_admin: u64,
    pub(super) claimed: KeyRangeSet,
    /// The stores that voters are on, each with a region that has one there.
    pub(super) voters: BTreeMap<StoreId, RegionId>,
}

/// Why a store did not say it.
#[derive(Debug)]
pub(super) struct StoreProblem {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    /// Whether it answered, and may say something else in a moment.
    pub(super) passes: bool,
}

impl From<Failure> for StoreProblem {
    fn from(failure: Failure) -> Self {
        Self {
            kind: kind_of(failure.kind),
            message: failure.to_string(),
            passes: passes(&failure),
        }
    }
}

/// Returns what a failed call means to a user who wants to start a run.
pub(super) fn kind_of(kind: FailureKind) -> ErrorKind {
    match kind {
        FailureKind::Unsupported => ErrorKind::Unsupported,
        FailureKind::Tls => ErrorKind::Tls,
        FailureKind::Unauthenticated => ErrorKind::Unauthenticated,
        FailureKind::WrongService => ErrorKind::WrongService,
        FailureKind::WrongCluster => ErrorKind::WrongCluster,
        FailureKind::Finished
        | FailureKind::Unavailable
        | FailureKind::Transport
        | FailureKind::Timeout
        | FailureKind::Superseded
        | FailureKind::Cancelled
        | FailureKind::LeaseLost
        | FailureKind::ResourceExhausted
        | FailureKind::Malformed
        | FailureKind::Other => ErrorKind::Unreachable,
    }
}

/// Returns whether a run would just try again. Whoever keeps silent has used up
/// the time that was given.
pub(super) fn passes(failure: &Failure) -> bool {
    kind_of(failure.kind) == ErrorKind::Unreachable && failure.kind != FailureKind::Timeout
}

/// Asks a store for the regions it leads. `limit` is the time it may go
/// without an answer.
pub(super) async fn view_store(
    cluster: &impl ClusterClient,
    store: &Store,
    limit: Duration,
) -> Result<StoreView, StoreProblem> {
    let mut claims = timeout(limit, cluster.list_claims(store))
        .await
        .map_err(|_| silent(limit))??;
    let mut view = StoreView::default();
    while let Some(batch) = timeout(limit, claims.next())
        .await
        .map_err(|_| silent(limit))?
    {
        for claim in batch? {
            if claim.region.peer_on(store.id).is_none() {
                return Err(StoreProblem {
                    kind: ErrorKind::WrongService,
                    message: format!(
                        "claims region {} without a peer on it; another store is behind this address",
                        claim.region.id
                    ),
                    passes: false,
                });
            }
            for peer in &claim.region.peers {
                if peer.role.is_voter() {
                    view.voters.entry(peer.store_id).or_insert(claim.region.id);
                }
            }
            view.leaders += 1;
            view.pending_admin += u64::from(claim.has_pending_admin);
            view.claimed.insert(&claim.region.range);
        }
    }
    Ok(view)
}

fn silent(limit: Duration) -> StoreProblem {
    StoreProblem {
        kind: ErrorKind::Unreachable,
        message: format!("no answer within {limit:?}"),
        passes: false,
    }
}
