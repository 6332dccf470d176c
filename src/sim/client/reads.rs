use std::collections::BTreeMap;

use super::cluster::unexpected;
use crate::cluster::Batches;
use crate::error::{Failure, FailureKind};
use crate::region::{Claim, ReadAnswer, ReadTarget, RegionError, RegionErrorKind, StoreId};
use crate::sim::hub::{Call, Group, Hub};
use crate::sim::mapping::{from_region_error, from_status};
use crate::sim::model::{
    Answer, CallId, ModelRegionError, ReadKind, ReadRequest, RegionErrorDetail, Request,
};

/// The claims of a store of the simulated cluster.
#[derive(Debug)]
pub struct SimClaims {
    call: Call,
    /// How it ended, when that came together with claims.
    ended: Option<Answer>,
}

impl SimClaims {
    pub(super) fn new(call: Call) -> Self {
        Self { call, ended: None }
    }
}

impl Batches<Claim> for SimClaims {
    async fn next(&mut self) -> Option<Result<Vec<Claim>, Failure>> {
        loop {
            if let Some(ended) = self.ended.take() {
                return end_of_listing(ended).map(Err);
            }
            let mut claims = Vec::new();
            for answer in self.call.next().await {
                match answer {
                    Answer::Claims(some) => claims.extend(some),
                    other => self.ended = Some(other),
                }
            }
            if !claims.is_empty() {
                return Some(Ok(claims));
            }
        }
    }
}

/// Returns what is wrong with the end of a listing, if anything.
fn end_of_listing(ended: Answer) -> Option<Failure> {
    match ended {
        Answer::End(status) => {
            let failure = from_status(status);
            (failure.kind != FailureKind::Finished).then_some(failure)
        }
        _ => Some(unexpected()),
    }
}

/// The answers to leader reads of the simulated cluster.
#[derive(Debug)]
pub struct SimReads {
    store: StoreId,
    group: Group,
    unanswered: BTreeMap<CallId, (ReadTarget, ReadKind)>,
    /// How the reads failed, when that came together with answers.
    failed: Option<Failure>,
}

impl SimReads {
    pub(super) fn start(hub: &Hub, store: StoreId, targets: Vec<ReadTarget>) -> Self {
        let requests = targets
            .iter()
            .map(|target| request(store, target, ReadKind::KvBatchGet));
        let group = hub.call_all(requests);
        let reads = targets.iter().map(|&target| (target, ReadKind::KvBatchGet));
        let unanswered = group.calls().iter().copied().zip(reads).collect();
        Self {
            store,
            group,
            unanswered,
            failed: None,
        }
    }

    /// Takes an answer in; returns what it says of a region.
    fn take(&mut self, call: CallId, answer: Answer) -> Option<ReadAnswer> {
        let (target, kind) = self.unanswered.remove(&call)?;
        let result = match answer {
            Answer::Read(Ok(())) => Ok(()),
            Answer::Read(Err(error)) if is_api_version(&error) => match kind {
                ReadKind::KvBatchGet => {
                    self.ask_raw(target);
                    return None;
                }
                ReadKind::RawBatchGet => Err(RegionError::new(
                    RegionErrorKind::Unsupported,
                    error.message,
                )),
            },
            Answer::Read(Err(error)) => Err(from_region_error(error)),
            Answer::End(status) => {
                self.failed = Some(from_status(status));
                return None;
            }
            _ => {
                self.failed = Some(unexpected());
                return None;
            }
        };
        Some(ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result,
        })
    }

    /// Reads anew in the way that storage with TTL has.
    fn ask_raw(&mut self, target: ReadTarget) {
        let kind = ReadKind::RawBatchGet;
        if let Some(call) = self.group.call(request(self.store, &target, kind)) {
            self.unanswered.insert(call, (target, kind));
        }
    }
}

impl Batches<ReadAnswer> for SimReads {
    async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        loop {
            if let Some(failure) = self.failed.take() {
                return Some(Err(failure));
            }
            if self.unanswered.is_empty() {
                return None;
            }
            let mut answers = Vec::new();
            for (call, answer) in self.group.next().await {
                answers.extend(self.take(call, answer));
            }
            if !answers.is_empty() {
                return Some(Ok(answers));
            }
        }
    }
}

fn is_api_version(error: &ModelRegionError) -> bool {
    error.detail == RegionErrorDetail::ApiVersionNotMatched
}

fn request(store: StoreId, target: &ReadTarget, kind: ReadKind) -> Request {
    Request::LeaderRead {
        store,
        read: ReadRequest {
            region_id: target.region_id,
            epoch: target.epoch,
            peer_id: target.peer_id,
            peer_store: store,
            kind,
            ..ReadRequest::default()
        },
    }
}
