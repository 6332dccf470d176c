use std::sync::{Arc, Mutex, PoisonError};

use super::hold::Observer;
use crate::machine::{Config, ForeignLease};
use crate::progress::PrepareReport;
use crate::sim::oracle::{Claimed, Verdict, Violation, judge};
use crate::sim::server::Served;

/// Compares what a run says with what happened in the simulated cluster.
#[derive(Debug)]
pub(super) struct Oracle {
    served: Arc<Served>,
    claimed: Mutex<Claimed>,
}

impl Oracle {
    pub(super) fn new(served: Arc<Served>, config: &Config) -> Self {
        Self {
            served,
            claimed: Mutex::new(Claimed {
                verdict: Verdict::NotHeld,
                stores: Vec::new(),
                lease: Some(config.lease),
                window: Some(config.window),
                leaves_foreign: config.foreign_lease == ForeignLease::Refuse,
                ..Claimed::default()
            }),
        }
    }

    /// Returns what is not true, once the run is over.
    pub(super) fn judge(&self) -> Vec<Violation> {
        let claimed = self.claim(|claimed| claimed.clone());
        self.served.with_model(|cluster| judge(cluster, &claimed))
    }

    fn claim<R>(&self, change: impl FnOnce(&mut Claimed) -> R) -> R {
        // A claim is written in one step, so a panic elsewhere leaves it whole.
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut claimed)
    }
}

impl Observer for Oracle {
    fn held(&self, report: &PrepareReport) {
        self.served
            .with_model(|cluster| cluster.note_hold(cluster.now()));
        self.claim(|claimed| {
            // Until something better is said.
            claimed.verdict = Verdict::NotGood;
            claimed.stores = report.stores.iter().map(|(id, _)| *id).collect();
        });
    }

    fn finishing(&self) {
        self.served
            .with_model(|cluster| cluster.note_finish(cluster.now()));
    }

    fn finished(&self, is_good: bool) {
        if is_good {
            self.claim(|claimed| claimed.verdict = Verdict::Good);
        }
    }
}
