use std::fmt;

use super::context::Context;
use super::{claims, lease, listing, read, wait};
use crate::cluster::ClusterClient;
use crate::region::StoreId;

/// What the suite has to know of the cluster it runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// All stores that PD lists, also those that take no part, in any order.
    pub stores: Vec<StoreId>,
    /// The number of regions. They cover all keys.
    pub regions: usize,
    /// A store that takes part and leads a region.
    pub store: StoreId,
}

/// How a check ended that found nothing wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// The client did what it should.
    Passed,
    /// The cluster is too small to tell, for the reason given.
    Skipped(&'static str),
}

/// A check that failed: its name, and what was wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The check.
    pub check: Check,
    /// What was wrong.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.message)
    }
}

impl std::error::Error for Violation {}

/// One part of the contract of a [`ClusterClient`]. A check starts from and
/// leaves behind a store without a lease, so that any one can run alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Check {
    /// `list_stores` lists every store once, with an address.
    ListStores,
    /// The regions of all keys tile them, from the lowest to the open end.
    ScanTiles,
    /// A page has as many regions as asked for, the first ones, in key order.
    ScanLimit,
    /// A scan starts with the region that holds its first key and ends with the
    /// one that holds its last.
    ScanRange,
    /// Pages put together are the whole.
    ScanPages,
    /// Each region is claimed once, by the store that PD says leads it.
    ClaimsTile,
    /// A listing that is dropped halfway harms nobody.
    ClaimsDropped,
    /// The first lease is answered 'not valid', the next ones 'valid'.
    LeaseFirstThenRenewed,
    /// Dropping the future of the next answers loses none.
    LeaseAnswerKept,
    /// Without a lease a wait ends the stream as `LeaseLost`.
    WaitWithoutLease,
    /// Each region of a wait is answered once, with what was asked for.
    WaitAnsweredOnce,
    /// Lease answers come in order between the answers of a wait.
    WaitBetweenRenewals,
    /// A wait for an unknown region is answered `RegionNotFound`.
    WaitUnknownRegion,
    /// A wait with another epoch, in either number, is answered `EpochNotMatch`.
    WaitWrongEpoch,
    /// Finish is answered 'valid' and ends the stream as `Finished`; the lease
    /// is gone.
    FinishEndsLease,
    /// Finish without a lease is answered 'not valid' and ends the stream too.
    FinishWithoutLease,
    /// A second stream ends the first as `Superseded`; the lease stays.
    SecondStreamSupersedes,
    /// A stream that is dropped leaves the lease in force.
    DroppedStreamKeepsLease,
    /// A sender that is dropped without Finish makes the store cancel.
    DroppedSenderCancels,
    /// Streams on different stores do not disturb each other.
    StreamsOnAllStores,
    /// A leader serves reads, answering once for each region.
    ReadAtLeader,
    /// A store that does not lead refuses.
    ReadElsewhere,
    /// Another version of the epoch is refused, another conf version served.
    ReadWrongEpoch,
    /// An unknown region and another peer are refused as what they are.
    ReadWrongTarget,
}

impl Check {
    /// Every check, in the order in which [`run`] runs them.
    pub const ALL: [Self; 24] = [
        Self::ListStores,
        Self::ScanTiles,
        Self::ScanLimit,
        Self::ScanRange,
        Self::ScanPages,
        Self::ClaimsTile,
        Self::ClaimsDropped,
        Self::LeaseFirstThenRenewed,
        Self::LeaseAnswerKept,
        Self::WaitWithoutLease,
        Self::WaitAnsweredOnce,
        Self::WaitBetweenRenewals,
        Self::WaitUnknownRegion,
        Self::WaitWrongEpoch,
        Self::FinishEndsLease,
        Self::FinishWithoutLease,
        Self::SecondStreamSupersedes,
        Self::DroppedStreamKeepsLease,
        Self::DroppedSenderCancels,
        Self::StreamsOnAllStores,
        Self::ReadAtLeader,
        Self::ReadElsewhere,
        Self::ReadWrongEpoch,
        Self::ReadWrongTarget,
    ];

    /// Returns the name of the check, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ListStores => "list_stores",
            Self::ScanTiles => "scan_tiles",
            Self::ScanLimit => "scan_limit",
            Self::ScanRange => "scan_range",
            Self::ScanPages => "scan_pages",
            Self::ClaimsTile => "claims_tile",
            Self::ClaimsDropped => "claims_dropped",
            Self::LeaseFirstThenRenewed => "lease_first_then_renewed",
            Self::LeaseAnswerKept => "lease_answer_kept",
            Self::WaitWithoutLease => "wait_without_lease",
            Self::WaitAnsweredOnce => "wait_answered_once",
            Self::WaitBetweenRenewals => "wait_between_renewals",
            Self::WaitUnknownRegion => "wait_unknown_region",
            Self::WaitWrongEpoch => "wait_wrong_epoch",
            Self::FinishEndsLease => "finish_ends_lease",
            Self::FinishWithoutLease => "finish_without_lease",
            Self::SecondStreamSupersedes => "second_stream_supersedes",
            Self::DroppedStreamKeepsLease => "dropped_stream_keeps_lease",
            Self::DroppedSenderCancels => "dropped_sender_cancels",
            Self::StreamsOnAllStores => "streams_on_all_stores",
            Self::ReadAtLeader => "read_at_leader",
            Self::ReadElsewhere => "read_elsewhere",
            Self::ReadWrongEpoch => "read_wrong_epoch",
            Self::ReadWrongTarget => "read_wrong_target",
        }
    }

    /// Runs this check alone.
    ///
    /// # Errors
    /// A [`Violation`] when the client, or the cluster, did something else than
    /// what the contract says.
    ///
    /// # Cancel safety
    /// Dropping the future may leave a lease behind on the store.
    pub async fn run<C: ClusterClient>(
        self,
        client: &C,
        expected: &Expectation,
    ) -> Result<Verdict, Violation> {
        let context = Context { client, expected };
        let result = match self {
            Self::ListStores => listing::list_stores(&context).await,
            Self::ScanTiles => listing::scan_tiles(&context).await,
            Self::ScanLimit => listing::scan_limit(&context).await,
            Self::ScanRange => listing::scan_range(&context).await,
            Self::ScanPages => listing::scan_pages(&context).await,
            Self::ClaimsTile => claims::tile(&context).await,
            Self::ClaimsDropped => claims::dropped(&context).await,
            Self::LeaseFirstThenRenewed => lease::first_then_renewed(&context).await,
            Self::LeaseAnswerKept => lease::answer_kept(&context).await,
            Self::WaitWithoutLease => wait::without_lease(&context).await,
            Self::WaitAnsweredOnce => wait::answered_once(&context).await,
            Self::WaitBetweenRenewals => wait::between_renewals(&context).await,
            Self::WaitUnknownRegion => wait::unknown_region(&context).await,
            Self::WaitWrongEpoch => wait::wrong_epoch(&context).await,
            Self::FinishEndsLease => lease::finish_ends_lease(&context).await,
            Self::FinishWithoutLease => lease::finish_without_lease(&context).await,
            Self::SecondStreamSupersedes => lease::second_stream_supersedes(&context).await,
            Self::DroppedStreamKeepsLease => lease::dropped_stream_keeps_lease(&context).await,
            Self::DroppedSenderCancels => lease::dropped_sender_cancels(&context).await,
            Self::StreamsOnAllStores => lease::streams_on_all_stores(&context).await,
            Self::ReadAtLeader => read::at_leader(&context).await,
            Self::ReadElsewhere => read::elsewhere(&context).await,
            Self::ReadWrongEpoch => read::wrong_epoch(&context).await,
            Self::ReadWrongTarget => read::wrong_target(&context).await,
        };
        result.map_err(|message| Violation {
            check: self,
            message,
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs every check and returns what was found wrong: nothing, if the client
/// conforms.
///
/// # Cancel safety
/// Dropping the future may leave a lease behind on a store.
pub async fn run<C: ClusterClient>(client: &C, expected: &Expectation) -> Vec<Violation> {
    let mut violations = Vec::new();
    for check in Check::ALL {
        violations.extend(check.run(client, expected).await.err());
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_listed_once() {
        let mut names: Vec<&str> = Check::ALL.iter().map(|check| check.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Check::ALL.len());
        // The last variant of the enum: one that is added but not listed shows.
        assert_eq!(Check::ReadWrongTarget as usize + 1, Check::ALL.len());
    }
}
