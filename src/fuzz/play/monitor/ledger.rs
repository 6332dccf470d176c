use std::collections::{BTreeMap, BTreeSet};

use crate::machine::Config;
use crate::progress::{FinishReport, ReleaseState};
use crate::region::StoreId;
use crate::time::Timestamp;

/// Which stores may hold a lease of ours, over all attempts.
#[derive(Clone, Default, Debug)]
pub(super) struct Ledger {
    /// When a lease was asked for last.
    leased: BTreeMap<StoreId, Timestamp>,
}

impl Ledger {
    pub(super) fn leased(&mut self, store: StoreId, now: Timestamp) {
        self.leased.insert(store, now);
    }

    /// Finish was answered in time.
    pub(super) fn released(&mut self, store: StoreId) {
        self.leased.remove(&store);
    }

    /// R16: whoever may still be suspended is named, with the time.
    pub(super) fn check(
        &self,
        config: &Config,
        report: &FinishReport,
        left_alone: &BTreeSet<StoreId>,
    ) -> Result<(), String> {
        for (store, sent) in &self.leased {
            let end = *sent + config.lease;
            if end <= report.closed_at {
                continue;
            }
            let state = report.stores.iter().find(|(id, _)| id == store);
            match state {
                Some((_, ReleaseState::Unknown { until })) if *until >= end => {}
                Some((_, ReleaseState::LeftToOther { .. })) if left_alone.contains(store) => {}
                other => {
                    return Err(format!(
                        "store {store} may be suspended until {end}, the report says {other:?} (R16)"
                    ));
                }
            }
        }
        Ok(())
    }
}
