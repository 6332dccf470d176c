use std::collections::{BTreeMap, BTreeSet};

use snapshot_prepare::region::{Region, RegionId, StoreId};
use snapshot_prepare::sim::model::CallId;
use snapshot_prepare::time::Timestamp;

/// A wait or a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Asked {
    Wait(StoreId, RegionId),
    Read(CallId),
}

/// The waits and reads that are not answered.
#[derive(Default)]
pub(super) struct Waiting {
    regions: BTreeMap<Asked, (Region, Timestamp)>,
    deadlines: BTreeSet<(Timestamp, Asked)>,
    ids: BTreeSet<RegionId>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    pub(super) fn holds(&self, region: RegionId) -> bool {
        self.ids.contains(&region)
    }

    pub(super) fn add(&mut self, asked: Asked, region: Region, deadline: Timestamp) {
        self.ids.insert(region.id);
        self.deadlines.insert((deadline, asked));
        self.regions.insert(asked, (region, deadline));
    }

    /// Takes out what was answered; `None` when it is not waited for any more.
    pub(super) fn take(&mut self, asked: Asked) -> Option<Region> {
        let (region, deadline) = self.regions.remove(&asked)?;
        self.deadlines.remove(&(deadline, asked));
        self.ids.remove(&region.id);
        Some(region)
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes out what has been waited for too long.
    pub(super) fn take_overdue(&mut self, now: Timestamp) -> Option<Region> {
        let (deadline, asked) = *self.deadlines.first()?;
        (deadline <= now).then(|| self.take(asked)).flatten()
    }
}
