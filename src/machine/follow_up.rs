use std::time::Duration;

use super::entry::Asked;
use super::known::Known;
use crate::range::KeyRange;
use crate::region::{RegionId, StoreId};

/// How a range's failure is to be followed up.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowUp {
    /// The store whose answer it was.
    pub(super) store: Option<StoreId>,
    /// What was asked there.
    pub(super) failed: Option<Asked>,
    /// The region, and the store where it was, for reports.
    pub(super) about: Option<(RegionId, StoreId)>,
    pub(super) haste: Haste,
    /// The shortest wait before the look.
    pub(super) at_least: Duration,
}

/// How soon a failed range is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Haste {
    /// The first time at once: what was known may simply be out of date, and one
    /// look tells (rule R10).
    AtOnce,
    /// The cluster is changing there; that is mostly over in milliseconds.
    Soon,
    /// After the backoff of rule R9.
    Backoff,
}

impl FollowUp {
    pub(super) const fn new(haste: Haste) -> Self {
        Self {
            store: None,
            failed: None,
            about: None,
            haste,
            at_least: Duration::ZERO,
        }
    }

    /// After an answer of `store`.
    pub(super) const fn at(store: StoreId, haste: Haste) -> Self {
        Self {
            store: Some(store),
            ..Self::new(haste)
        }
    }

    /// Says which region it is about, and at which store.
    pub(super) const fn about(self, region: RegionId, store: StoreId) -> Self {
        Self {
            about: Some((region, store)),
            ..self
        }
    }

    /// Returns what is known of the range that failed.
    pub(super) fn known(&self, range: &KeyRange) -> Known {
        let failed = self.failed.map(|(store, region, _)| (region, store));
        match self.about.or(failed) {
            Some((region, store)) => Known::claimed(region, store, range.clone()),
            None => Known::default(),
        }
    }
}
