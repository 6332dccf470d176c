use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;

use super::problem::Problem;
use super::store_view::{kind_of, passes};
use crate::cluster::ClusterClient;
use crate::error::{ErrorKind, Failure};
use crate::range::{EndKey, KeyRange, KeyRangeSet};
use crate::region::{ScannedRegion, StoreId};

/// The regions as PD sees them.
#[derive(Debug, Default)]
pub(super) struct PdView {
    pub(super) regions: u64,
    pub(super) leaderless: u64,
    pub(super) known: KeyRangeSet,
    /// Per store: regions with a peer there, and regions led there.
    pub(super) per_store: BTreeMap<StoreId, (u64, u64)>,
}

impl PdView {
    fn add(&mut self, scanned: &ScannedRegion) {
        self.regions += 1;
        self.known.insert(&scanned.region.range);
        for peer in &scanned.region.peers {
            self.per_store.entry(peer.store_id).or_default().0 += 1;
        }
        match scanned.leader {
            Some(leader) => self.per_store.entry(leader).or_default().1 += 1,
            None => self.leaderless += 1,
        }
    }
}

/// Reads all regions from PD, page by page.
pub(super) async fn view_pd(
    cluster: &impl ClusterClient,
    page_size: u32,
    limit: Duration,
) -> Result<PdView, Problem> {
    let mut view = PdView::default();
    let mut rest = KeyRange::whole();
    loop {
        let page = timeout(limit, cluster.scan_regions(rest.clone(), page_size))
            .await
            .map_err(|_| silent(limit))?
            .map_err(|failure| refused(&failure))?;
        for scanned in &page {
            view.add(scanned);
        }
        let Some(EndKey::Bounded(next)) = page.last().map(|last| last.region.range.end()) else {
            return Ok(view);
        };
        // A page that does not lead on ends the reading; what is missing then
        // shows as a gap.
        match KeyRange::new(next.clone(), EndKey::Unbounded) {
            Some(further) if further.start() > rest.start() => rest = further,
            _ => return Ok(view),
        }
    }
}

fn silent(limit: Duration) -> Problem {
    Problem {
        kind: ErrorKind::Unreachable.as_str(),
        message: format!("PD does not tell its regions within {limit:?}"),
        store: None,
        passes: false,
    }
}

fn refused(failure: &Failure) -> Problem {
    Problem {
        kind: kind_of(failure.kind).as_str(),
        message: format!("PD does not tell its regions: {failure}"),
        store: None,
        passes: passes(failure),
    }
}
