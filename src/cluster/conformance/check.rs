use super::context::Context;
use super::{claims, lease, listing, read, wait};
use crate::cluster::ClusterClient;
use crate::conformance::checks;
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

checks! {
    /// One part of the contract of a [`ClusterClient`]. A check starts from and
    /// leaves behind a store without a lease, so that any one can run alone.
    pub enum Check {
        /// `list_stores` lists every store once, with an address.
        ListStores => "list_stores",
        /// The regions of all keys tile them, from the lowest to the open end.
        ScanTiles => "scan_tiles",
        /// A page has as many regions as asked for, the first ones, in key order.
        ScanLimit => "scan_limit",
        /// A scan starts with the region that holds its first key and ends with the
        /// one that holds its last.
        ScanRange => "scan_range",
        /// Pages put together are the whole.
        ScanPages => "scan_pages",
        /// Each region is claimed once, by the store that PD says leads it.
        ClaimsTile => "claims_tile",
        /// A listing that is dropped halfway harms nobody.
        ClaimsDropped => "claims_dropped",
        /// The first lease is answered 'not valid', the next ones 'valid'.
        LeaseFirstThenRenewed => "lease_first_then_renewed",
        /// Dropping the future of the next answers loses none.
        LeaseAnswerKept => "lease_answer_kept",
        /// Without a lease a wait ends the stream as `LeaseLost`.
        WaitWithoutLease => "wait_without_lease",
        /// Each region of a wait is answered once, with what was asked for.
        WaitAnsweredOnce => "wait_answered_once",
        /// Lease answers come in order between the answers of a wait.
        WaitBetweenRenewals => "wait_between_renewals",
        /// A wait for an unknown region is answered `RegionNotFound`.
        WaitUnknownRegion => "wait_unknown_region",
        /// A wait with another epoch, in either number, is answered `EpochNotMatch`.
        WaitWrongEpoch => "wait_wrong_epoch",
        /// Finish is answered 'valid' and ends the stream as `Finished`; the lease
        /// is gone.
        FinishEndsLease => "finish_ends_lease",
        /// Finish without a lease is answered 'not valid' and ends the stream too.
        FinishWithoutLease => "finish_without_lease",
        /// A second stream ends the first as `Superseded`; the lease stays.
        SecondStreamSupersedes => "second_stream_supersedes",
        /// A stream that is dropped leaves the lease in force.
        DroppedStreamKeepsLease => "dropped_stream_keeps_lease",
        /// A sender that is dropped without Finish makes the store cancel.
        DroppedSenderCancels => "dropped_sender_cancels",
        /// Streams on different stores do not disturb each other.
        StreamsOnAllStores => "streams_on_all_stores",
        /// A leader serves reads, answering once for each region.
        ReadAtLeader => "read_at_leader",
        /// A store that does not lead refuses.
        ReadElsewhere => "read_elsewhere",
        /// Another version of the epoch is refused, another conf version served.
        ReadWrongEpoch => "read_wrong_epoch",
        /// An unknown region and another peer are refused as what they are.
        ReadWrongTarget => "read_wrong_target",
    }
}

impl Check {
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
