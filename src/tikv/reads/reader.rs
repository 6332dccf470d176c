use std::sync::Arc;

use super::manner::Manner;
use crate::pb::kvrpcpb::{BatchGetRequest, Context, RawBatchGetRequest};
use crate::pb::metapb;
use crate::region::{ReadTarget, StoreId};
use crate::tikv::convert;
use crate::tikv::peer::Peer;

/// A store that is read from, and what was learned of it.
#[derive(Clone, Debug)]
pub(in crate::tikv) struct Reader {
    pub(in crate::tikv) peer: Arc<Peer>,
    pub(in crate::tikv) store_id: StoreId,
    pub(in crate::tikv) cluster_id: u64,
    pub(in crate::tikv) max_answer_bytes: usize,
    pub(in crate::tikv) manner: Arc<Manner>,
}

impl Reader {
    pub(super) fn kv(&self, target: &ReadTarget) -> BatchGetRequest {
        BatchGetRequest {
            context: Some(self.context(target)),
            // The one large version that does not raise the highest timestamp
            // that the store has seen.
            version: u64::MAX,
            ..BatchGetRequest::default()
        }
    }

    pub(super) fn raw(&self, target: &ReadTarget) -> RawBatchGetRequest {
        RawBatchGetRequest {
            context: Some(self.context(target)),
            ..RawBatchGetRequest::default()
        }
    }

    /// What makes it a read by the leader: neither replica read nor stale read.
    fn context(&self, target: &ReadTarget) -> Context {
        Context {
            region_id: target.region_id.0,
            region_epoch: Some(convert::epoch_to_wire(target.epoch)),
            peer: Some(metapb::Peer {
                id: target.peer_id.0,
                store_id: self.store_id.0,
                ..metapb::Peer::default()
            }),
            not_fill_cache: true,
            request_source: "snapshot-prepare".to_owned(),
            cluster_id: self.cluster_id,
            ..Context::default()
        }
    }
}
