use std::fmt;
use std::time::Duration;

use super::{
    bounded_window, bounded_work, clean_end, false_hold, forbidden_target, honest_verdict,
    late_trust, liveness,
};
use crate::error::ErrorKind;
use crate::region::StoreId;
use crate::sim::model::Cluster;

/// How a run says that it ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Verdict {
    /// There was no hold.
    #[default]
    NotHeld,
    /// There was a hold, and it was lost or given up.
    NotGood,
    /// There was a hold, and it was good to the end.
    Good,
}

/// What a run says of itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Claimed {
    /// How it ended.
    pub verdict: Verdict,
    /// The stores that it held (or would have); empty when not known.
    pub stores: Vec<StoreId>,
    /// The lease it asks for; `None` when not known.
    pub lease: Option<Duration>,
    /// Its window; `None` when not known.
    pub window: Option<u32>,
    /// Why there was no hold, or none that was good to the end; `None` when not
    /// known, when all was well, or when somebody gave it up.
    pub failed: Option<ErrorKind>,
    /// How long it had to prepare; `None` when not known.
    pub prepare_timeout: Option<Duration>,
    /// Whether it leaves a store to whoever had its lease before.
    pub leaves_foreign: bool,
}

/// A property that does not hold, and how.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Violation {
    /// The name of the property.
    pub property: &'static str,
    /// What happened.
    pub message: String,
}

impl Violation {
    /// Returns a violation of `property`, also of one of your own.
    pub fn new(property: &'static str, message: impl Into<String>) -> Self {
        Self {
            property,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.message)
    }
}

/// Compares what a run claims with what happened in the model. An empty list
/// means that all is well.
pub fn judge(cluster: &Cluster, claimed: &Claimed) -> Vec<Violation> {
    let mut found = false_hold::check(cluster, claimed);
    found.extend(honest_verdict::check(cluster, claimed));
    found.extend(late_trust::check(cluster, claimed));
    found.extend(clean_end::check(cluster, claimed));
    found.extend(bounded_work::check(cluster, claimed));
    found.extend(bounded_window::check(cluster, claimed));
    found.extend(forbidden_target::check(cluster, claimed));
    found.extend(liveness::check(cluster, claimed));
    found
}
