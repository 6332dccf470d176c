use std::time::Duration;

use serde::Serialize;

use crate::progress::PrepareReport;

/// Where the time went until the hold began.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// The phases of the attempt that reached the hold, in order.
    pub(crate) phases: Vec<PhaseTime>,
    pub(crate) slowest_stores: Vec<SlowStore>,
    pub(crate) slowest_regions: Vec<SlowRegion>,
    /// Regions asked to wait for, regions read, listings of stores, pages of PD.
    pub(crate) waits: u64,
    pub(crate) reads: u64,
    pub(crate) listings: u64,
    pub(crate) scans: u64,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct PhaseTime {
    pub(crate) phase: &'static str,
    pub(crate) ms: u64,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlowStore {
    pub(crate) store: u64,
    pub(crate) ms: u64,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlowRegion {
    pub(crate) region: u64,
    pub(crate) store: u64,
    pub(crate) ms: u64,
}

impl Timing {
    pub(crate) fn of(report: &PrepareReport) -> Self {
        let phases = report.phases.iter().map(|(phase, time)| PhaseTime {
            phase: phase.as_str(),
            ms: millis(*time),
        });
        let stores = report.slowest_stores.iter().map(|(id, time)| SlowStore {
            store: id.0,
            ms: millis(*time),
        });
        let regions = report.slowest_regions.iter();
        let regions = regions.map(|(region, store, time)| SlowRegion {
            region: region.0,
            store: store.0,
            ms: millis(*time),
        });
        Self {
            phases: phases.collect(),
            slowest_stores: stores.collect(),
            slowest_regions: regions.collect(),
            waits: report.work.waits,
            reads: report.work.reads,
            listings: report.work.listings,
            scans: report.work.scans,
        }
    }
}

/// Returns whole milliseconds, as the JSON lines have them.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
