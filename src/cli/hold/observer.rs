use std::fmt;

use crate::progress::PrepareReport;

/// Somebody who is told of a hold as it goes; for the simulation, which judges
/// it by what happened in the cluster.
pub(crate) trait Observer: fmt::Debug + Send + Sync {
    /// The hold began.
    fn held(&self, report: &PrepareReport);
    /// The end of the hold is about to be asked for.
    fn finishing(&self);
    /// The verdict is there.
    fn finished(&self, is_good: bool);
}

/// Nobody.
impl Observer for () {
    fn held(&self, _: &PrepareReport) {}

    fn finishing(&self) {}

    fn finished(&self, _: bool) {}
}
