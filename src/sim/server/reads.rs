//! A store's leader reads, alone and many in a message.

use std::future::poll_fn;
use std::pin::Pin;

use futures_util::stream::{self, BoxStream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::read_batch::ReadBatch;
use super::socket::Breaker;
use super::store::{StoreService, breaker_of};
use super::{convert, region_error, replies};
use crate::pb::kvrpcpb::{
    BatchGetRequest, BatchGetResponse, Context, KeyError, KvPair, RawBatchGetRequest,
    RawBatchGetResponse,
};
use crate::pb::tikvpb::tikv_server::Tikv;
use crate::pb::tikvpb::{BatchCommandsRequest, BatchCommandsResponse};
use crate::region::{PeerId, RegionId, StoreId};
use crate::sim::hub::Call;
use crate::sim::model::{
    Answer, ModelRegionError, ReadKind, ReadRequest, RegionErrorDetail, Request as Ask,
};

#[tonic::async_trait]
impl Tikv for StoreService {
    type BatchCommandsStream = BoxStream<'static, Result<BatchCommandsResponse, Status>>;

    async fn kv_batch_get(
        &self,
        request: Request<BatchGetRequest>,
    ) -> Result<Response<BatchGetResponse>, Status> {
        let breaker = breaker_of(&request);
        let context = request.into_inner().context.unwrap_or_default();
        let result = self.read(context, ReadKind::KvBatchGet, &breaker).await?;
        Ok(Response::new(kv_answer(result)))
    }

    async fn raw_batch_get(
        &self,
        request: Request<RawBatchGetRequest>,
    ) -> Result<Response<RawBatchGetResponse>, Status> {
        let breaker = breaker_of(&request);
        let context = request.into_inner().context.unwrap_or_default();
        let result = self.read(context, ReadKind::RawBatchGet, &breaker).await?;
        Ok(Response::new(raw_answer(result)))
    }

    async fn batch_commands(
        &self,
        request: Request<Streaming<BatchCommandsRequest>>,
    ) -> Result<Response<Self::BatchCommandsStream>, Status> {
        let breaker = breaker_of(&request);
        let mut reads = ReadBatch::new(self.clone(), breaker, request.into_inner());
        // Headers leave together with the first answer.
        let answers = match poll_fn(|cx| Pin::new(&mut reads).poll(cx)).await {
            None => stream::empty().boxed(),
            Some(Err(status)) => return Err(status),
            Some(Ok(first)) => stream::iter([Ok(first)]).chain(reads).boxed(),
        };
        Ok(Response::new(answers))
    }
}

impl StoreService {
    async fn read(
        &self,
        context: Context,
        kind: ReadKind,
        breaker: &Breaker,
    ) -> Result<Result<(), ModelRegionError>, Status> {
        let call = Call::new(&self.hub, self.read_request(context, kind)?);
        match call.only().await {
            Some(Answer::Read(result)) => Ok(result),
            Some(Answer::End(status)) => Err(replies::end(status, breaker).await),
            _ => Err(Status::internal("the model answered something else")),
        }
    }

    /// Returns what the model is asked, or the status when it is meant for
    /// another cluster.
    pub(super) fn read_request(&self, context: Context, kind: ReadKind) -> Result<Ask, Status> {
        if context.cluster_id != 0 && context.cluster_id != self.cluster_id {
            return Err(Status::invalid_argument(
                "the cluster id of the request does not match the TiKV cluster",
            ));
        }
        let peer = context.peer.unwrap_or_default();
        let read = ReadRequest {
            region_id: RegionId(context.region_id),
            epoch: convert::read_epoch(context.region_epoch.unwrap_or_default()),
            peer_id: PeerId(peer.id),
            peer_store: StoreId(peer.store_id),
            term: context.term,
            replica_read: context.replica_read,
            stale_read: context.stale_read,
            kind,
            api_version: u32::try_from(context.api_version).unwrap_or(u32::MAX),
        };
        let store = self.store;
        Ok(Ask::LeaderRead { store, read })
    }
}

pub(super) fn kv_answer(result: Result<(), ModelRegionError>) -> BatchGetResponse {
    let mut response = BatchGetResponse::default();
    match result {
        Ok(()) => {}
        Err(error) if error.detail == RegionErrorDetail::ApiVersionNotMatched => {
            let error = abort(error.message);
            response.pairs.push(failed_pair(error.clone()));
            response.error = Some(error);
        }
        Err(error) => response.region_error = Some(region_error::to_wire(error)),
    }
    response
}

pub(super) fn raw_answer(result: Result<(), ModelRegionError>) -> RawBatchGetResponse {
    let mut response = RawBatchGetResponse::default();
    match result {
        Ok(()) => {}
        Err(error) if error.detail == RegionErrorDetail::ApiVersionNotMatched => {
            response.pairs.push(failed_pair(abort(error.message)));
        }
        Err(error) => response.region_error = Some(region_error::to_wire(error)),
    }
    response
}

fn abort(message: String) -> KeyError {
    KeyError {
        abort: message,
        ..KeyError::default()
    }
}

fn failed_pair(error: KeyError) -> KvPair {
    KvPair {
        error: Some(error),
        ..KvPair::default()
    }
}
