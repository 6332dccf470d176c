use std::fmt;
use std::time::Duration;

use super::{bounds, clean_end, false_hold, honest_verdict};
use crate::region::StoreId;
use crate::sim::model::Cluster;

/// How a run says that it ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// There was no hold.
    NotHeld,
    /// There was a hold, and it was lost or given up.
    NotGood,
    /// There was a hold, and it was good to the end.
    Good,
}

/// What a run says of itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claimed {
    /// How it ended.
    pub verdict: Verdict,
    /// The stores that it held (or would have); empty when not known.
    pub stores: Vec<StoreId>,
    /// The lease it asks for; `None` when not known.
    pub lease: Option<Duration>,
    /// Its window; `None` when not known.
    pub window: Option<u32>,
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
    found.extend(clean_end::check(cluster, claimed));
    found.extend(bounds::check(cluster, claimed));
    found
}
