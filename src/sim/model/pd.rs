use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::PdReport;
use crate::range::{Key, KeyRange};
use crate::region::{Peer, Region, RegionId, ScannedRegion};
use crate::time::Timestamp;

/// What PD knows of the regions: what their leaders told it, some time ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Pd {
    regions: BTreeMap<RegionId, Known>,
    by_start: BTreeMap<Key, RegionId>,
    /// Until then PD has no leader and answers nothing of use.
    pub(super) down_until: Timestamp,
    /// Until then what leaders tell takes this long in addition, in
    /// microseconds.
    pub(super) lag: (Timestamp, u64),
}

#[derive(Clone, Debug)]
struct Known {
    region: Arc<Region>,
    leader: Option<Peer>,
    term: u64,
    /// Until then PD does not know the leader.
    leaderless_until: Timestamp,
    /// Until then scans leave it out.
    hidden_until: Timestamp,
}

impl Pd {
    /// Takes in what a leader tells, unless PD knows better.
    pub(super) fn report(&mut self, report: PdReport) {
        let PdReport {
            region,
            leader,
            term,
        } = report;
        let mut marks = (Timestamp::ZERO, Timestamp::ZERO);
        if let Some(known) = self.regions.get(&region.id) {
            // By far the most reports bring nothing new.
            if known.leader == Some(leader)
                && known.term == term
                && Arc::ptr_eq(&known.region, &region)
            {
                return;
            }
            let (old, new) = (known.region.epoch, region.epoch);
            let older = new.version < old.version || new.conf_ver < old.conf_ver;
            if older || (old == new && term < known.term) {
                return;
            }
            marks = (known.leaderless_until, known.hidden_until);
        }
        let overlapping = self.overlapping(&region.range);
        let newer = |id: &RegionId| {
            let known = self.regions.get(id);
            known.is_some_and(|known| known.region.epoch.version > region.epoch.version)
        };
        if overlapping.iter().any(newer) {
            return;
        }
        for id in overlapping {
            self.forget(id);
        }
        self.forget(region.id);
        self.by_start
            .insert(region.range.start().clone(), region.id);
        self.regions.insert(
            region.id,
            Known {
                region,
                leader: Some(leader),
                term,
                leaderless_until: marks.0,
                hidden_until: marks.1,
            },
        );
    }

    /// Puts in a region that has no leader yet.
    pub(super) fn learn(&mut self, region: Arc<Region>) {
        self.by_start
            .insert(region.range.start().clone(), region.id);
        self.regions.insert(
            region.id,
            Known {
                region,
                leader: None,
                term: 0,
                leaderless_until: Timestamp::ZERO,
                hidden_until: Timestamp::ZERO,
            },
        );
    }

    fn forget(&mut self, id: RegionId) {
        if let Some(known) = self.regions.remove(&id) {
            let start = known.region.range.start();
            if self.by_start.get(start) == Some(&id) {
                self.by_start.remove(start);
            }
        }
    }

    fn overlapping(&self, range: &KeyRange) -> Vec<RegionId> {
        self.in_order(range).map(|known| known.region.id).collect()
    }

    fn in_order<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = &'a Known> {
        let before = self
            .by_start
            .range(..range.start().clone())
            .next_back()
            .map(|(_, id)| id);
        let within = self
            .by_start
            .range(range.start().clone()..)
            .take_while(|(start, _)| range.end().is_after(start))
            .map(|(_, id)| id);
        before
            .into_iter()
            .chain(within)
            .filter_map(|id| self.regions.get(id))
            .filter(move |known| known.region.range.overlaps(range))
    }

    pub(super) fn scan(&self, range: &KeyRange, limit: u32, now: Timestamp) -> Vec<ScannedRegion> {
        self.in_order(range)
            .filter(|known| known.hidden_until <= now)
            .take(limit as usize)
            .map(|known| ScannedRegion {
                region: Region::clone(&known.region),
                leader: known
                    .leader
                    .filter(|_| known.leaderless_until <= now)
                    .map(|peer| peer.store_id),
            })
            .collect()
    }

    /// Hides a region from scans, or its leader, until an instant.
    pub(super) fn hide(&mut self, id: RegionId, until: Timestamp, only_leader: bool) {
        if let Some(known) = self.regions.get_mut(&id) {
            if only_leader {
                known.leaderless_until = until;
            } else {
                known.hidden_until = until;
            }
        }
    }

    /// Forgets all leaders, as a restart does.
    pub(super) fn restart(&mut self) {
        for known in self.regions.values_mut() {
            known.leader = None;
            known.term = 0;
        }
    }

    /// Ends all that was hidden.
    pub(super) fn mend(&mut self) {
        self.down_until = Timestamp::ZERO;
        self.lag = (Timestamp::ZERO, 0);
        for known in self.regions.values_mut() {
            known.leaderless_until = Timestamp::ZERO;
            known.hidden_until = Timestamp::ZERO;
        }
    }
}
