use std::collections::BTreeMap;

use snapshot_prepare::range::{KeyRange, KeyRangeSet};
use snapshot_prepare::region::{Claim, Region, RegionId};

/// What is proven.
#[derive(Default)]
pub(super) struct Proofs {
    covered: KeyRangeSet,
    regions: BTreeMap<RegionId, Region>,
}

impl Proofs {
    pub(super) fn insert(&mut self, region: Region) {
        self.covered.insert(&region.range);
        self.regions.insert(region.id, region);
    }

    /// Returns the keys that are not covered.
    pub(super) fn gaps(&self) -> KeyRangeSet {
        let mut gaps = KeyRangeSet::new();
        for gap in self.covered.gaps(&KeyRange::whole()) {
            gaps.insert(&gap);
        }
        gaps
    }

    /// Compares a listing with what is proven, and uncovers what differs. Returns
    /// that.
    pub(super) fn compare(&mut self, claims: &[Claim]) -> KeyRangeSet {
        let mut claimed: BTreeMap<RegionId, u32> = BTreeMap::new();
        for claim in claims {
            *claimed.entry(claim.region.id).or_default() += 1;
        }
        let mut verified = KeyRangeSet::new();
        let mut differing = Vec::new();
        for claim in claims {
            let Region {
                id, range, epoch, ..
            } = &claim.region;
            let proven = self.regions.get(id);
            let is_same = !claim.has_pending_admin
                && claimed.get(id) == Some(&1)
                && proven.is_some_and(|proven| proven.epoch == *epoch && proven.range == *range)
                && !verified.overlaps(range);
            if is_same {
                verified.insert(range);
            } else {
                differing.extend(proven.map(|proven| proven.range.clone()));
                differing.push(range.clone());
            }
        }
        differing.extend(verified.gaps(&KeyRange::whole()));
        let mut uncovered = KeyRangeSet::new();
        for range in &differing {
            self.covered.remove(range);
            uncovered.insert(range);
        }
        uncovered
    }
}
