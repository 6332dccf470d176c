use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Config, RequestId};
use crate::range::KeyRange;
use crate::region::{Claim, RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

/// The order in which inputs and outputs were seen.
pub(super) type Seq = u64;

/// What was seen in one attempt.
#[derive(Clone, Default, Debug)]
pub(super) struct Attempt {
    /// The call for a store list that may still be answered.
    pub(super) list_call: Option<ListCall>,
    /// The stores of the last list, those that take part.
    pub(super) stores: Option<BTreeSet<StoreId>>,
    /// When the last list was asked for.
    pub(super) stores_asked: Seq,
    pub(super) streams: BTreeMap<RequestId, Stream>,
    pub(super) listing_calls: BTreeMap<StoreId, ListingCall>,
    /// The last complete listing of each store.
    pub(super) listings: BTreeMap<StoreId, Listing>,
    pub(super) reads: BTreeMap<(RequestId, RegionId), Read>,
    pub(super) confirmed: BTreeMap<(StoreId, RegionId), Confirmed>,
    pub(super) proofs: Vec<Proof>,
    /// What PD named as leaders, by scans begun at that point.
    pub(super) named: Vec<(Seq, RegionId, StoreId)>,
    pub(super) scans: BTreeMap<RequestId, Seq>,
    /// All listings that were complete, for `Proof::Claims`.
    pub(super) history: Vec<(StoreId, Listing)>,
}

#[derive(Clone, Debug)]
pub(super) struct ListCall {
    pub(super) request: RequestId,
    pub(super) asked: Seq,
    pub(super) sent: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct ListingCall {
    pub(super) request: RequestId,
    pub(super) asked: Seq,
    pub(super) progress: Timestamp,
    pub(super) claims: Vec<Claim>,
}

#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) asked: Seq,
    pub(super) claims: Vec<Claim>,
}

#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) store: StoreId,
    pub(super) opened: Option<Timestamp>,
    pub(super) ended: bool,
    pub(super) closed: bool,
    /// Leases asked for and not answered: number, time, order.
    pub(super) pending: Vec<(RequestId, Timestamp, Seq)>,
    pub(super) last_sent: Option<Timestamp>,
    pub(super) first_answered: Option<Seq>,
    /// When the last acknowledged request was sent.
    pub(super) acknowledged: Option<Timestamp>,
    /// The order of the last renewal that was answered 'valid'.
    pub(super) renewed: Option<Seq>,
    /// Whether a renewal was answered 'not valid', or out of order.
    pub(super) lapsed: bool,
    pub(super) finish: Option<RequestId>,
    /// What Finish was answered, if it was while the stream was ours.
    pub(super) finished: Option<bool>,
    pub(super) waits: BTreeMap<RegionId, Wait>,
}

#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) epoch: RegionEpoch,
    pub(super) range: KeyRange,
    pub(super) sent: Seq,
}

#[derive(Clone, Debug)]
pub(super) struct Confirmed {
    pub(super) wait: Wait,
}

#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) store: StoreId,
    pub(super) epoch: RegionEpoch,
    pub(super) wait: Wait,
}

/// A region's proof: the wait, and the read after it.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) store: StoreId,
    pub(super) region: RegionId,
    pub(super) wait: Wait,
    /// When the last part of it was seen.
    pub(super) seen: Seq,
}

impl Stream {
    pub(super) fn new(store: StoreId) -> Self {
        Self {
            store,
            opened: None,
            ended: false,
            closed: false,
            pending: Vec::new(),
            last_sent: None,
            first_answered: None,
            acknowledged: None,
            renewed: None,
            lapsed: false,
            finish: None,
            finished: None,
            waits: BTreeMap::new(),
        }
    }

    pub(super) const fn is_alive(&self) -> bool {
        !self.ended && !self.closed
    }

    /// Whether the store may hold our lease.
    pub(super) const fn is_leased(&self) -> bool {
        self.last_sent.is_some()
    }

    /// Whether our own clock says that the lease is over.
    pub(super) fn is_over(&self, config: &Config, now: Timestamp) -> bool {
        self.acknowledged
            .is_some_and(|sent| sent + config.lease <= now + config.margin)
    }
}

impl Attempt {
    /// The streams over which leases were asked for.
    pub(super) fn leased(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().filter(|stream| stream.is_leased())
    }

    /// When the last of all first leases was answered, if they all were.
    pub(super) fn all_leased(&self) -> Option<Seq> {
        let mut last = None;
        for stream in self.leased() {
            last = last.max(Some(stream.first_answered?));
        }
        last
    }

    /// What the store's last complete listing says of a region.
    pub(super) fn claim(
        &self,
        store: StoreId,
        region: RegionId,
        epoch: RegionEpoch,
    ) -> Option<&Claim> {
        self.listings
            .get(&store)?
            .claims
            .iter()
            .rev()
            .find(|claim| claim.region.id == region && claim.region.epoch == epoch)
    }
}
