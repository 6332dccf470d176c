//! How the tiny cluster answers: well, or in one of many bad ways.

use std::time::Duration;

use crate::error::{Failure, FailureKind};
use crate::machine::{Event, RequestId};
use crate::region::{
    ReadAnswer, RegionEpoch, RegionError, RegionErrorKind, StoreId, WaitAnswer, WaitTarget,
};
use crate::time::Timestamp;

use super::world::{Asked, World};

/// How something is answered.
#[derive(Clone, Debug)]
pub enum How {
    /// As a sound store or PD would, given the state of the cluster.
    Well,
    /// With a region error; a lease 'not valid', a call as unavailable.
    Refuse(RegionErrorKind),
    /// The call fails; for what goes over a stream, the stream ends.
    Fail(FailureKind),
    /// Well, but only a part, or an empty one.
    Partly,
    /// Yes, although the state of the cluster says no; for a lease 'valid'.
    Yes,
    /// For another epoch.
    WrongEpoch,
    /// Naming no region.
    Nameless,
}

/// Every kind of region error.
pub const REGION_ERRORS: [RegionErrorKind; 11] = [
    RegionErrorKind::EpochNotMatch,
    RegionErrorKind::RegionNotFound,
    RegionErrorKind::NotLeader,
    RegionErrorKind::StaleCommand,
    RegionErrorKind::ServerIsBusy {
        backoff: Duration::from_millis(700),
    },
    RegionErrorKind::Duplicated,
    RegionErrorKind::NotReady,
    RegionErrorKind::WrongPeer,
    RegionErrorKind::Unserved,
    RegionErrorKind::Unsupported,
    RegionErrorKind::Other,
];

pub fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, format!("{kind:?}"))
}

fn no(kind: RegionErrorKind) -> Result<(), RegionError> {
    Err(RegionError::new(kind, format!("{kind:?}")))
}

fn other(epoch: RegionEpoch) -> RegionEpoch {
    RegionEpoch {
        version: epoch.version + 7,
        ..epoch
    }
}

impl World {
    /// Answers one thing, which has to be taken off the list before.
    pub fn answer(&mut self, asked: &Asked, how: &How, now: Timestamp) -> Event {
        if let How::Fail(kind) = how {
            return self.fail(asked, *kind);
        }
        match asked {
            Asked::List { request } => match how {
                How::Refuse(_) => request_failed(*request, FailureKind::Unavailable),
                How::Partly => Event::StoresListed {
                    request: *request,
                    stores: Vec::new(),
                },
                _ => Event::StoresListed {
                    request: *request,
                    stores: self.store_list(),
                },
            },
            Asked::Open { stream, .. } => Event::StreamOpened { stream: *stream },
            Asked::Lease {
                request,
                store,
                seconds,
                ..
            } => {
                let end = now + Duration::from_secs(*seconds);
                self.lease(*request, *store, Some(end), how, now)
            }
            Asked::Finish {
                request,
                stream,
                store,
            } => {
                self.outstanding.push(Asked::End { stream: *stream });
                self.lease(*request, *store, None, how, now)
            }
            Asked::End { stream } => self.end_stream(*stream, FailureKind::Finished),
            Asked::Claims {
                request,
                store,
                told,
            } => self.answer_claims(*request, *store, *told, how),
            Asked::Wait {
                stream,
                store,
                target,
            } => self.answer_wait(*stream, *store, *target, how),
            Asked::Read {
                request,
                store,
                target,
            } => {
                let wait = WaitTarget {
                    region_id: target.region_id,
                    epoch: target.epoch,
                };
                let epoch = match how {
                    How::WrongEpoch => other(target.epoch),
                    _ => target.epoch,
                };
                Event::LeaderReadDone {
                    request: *request,
                    answers: vec![ReadAnswer {
                        region_id: target.region_id,
                        epoch,
                        result: self.judge(*store, wait, how, true),
                    }],
                }
            }
            Asked::Scan {
                request,
                range,
                limit,
            } => match how {
                How::Refuse(_) => request_failed(*request, FailureKind::Unavailable),
                How::Partly => Event::RegionsScanned {
                    request: *request,
                    regions: Vec::new(),
                },
                _ => Event::RegionsScanned {
                    request: *request,
                    regions: self.scan(range, *limit),
                },
            },
        }
    }

    /// Ends a stream.
    pub fn end_stream(&mut self, stream: RequestId, kind: FailureKind) -> Event {
        self.forget_stream(stream);
        Event::StreamEnded {
            stream,
            reason: failure(kind),
        }
    }

    fn fail(&mut self, asked: &Asked, kind: FailureKind) -> Event {
        match (asked, asked.stream()) {
            (_, Some(stream)) => self.end_stream(stream, kind),
            (
                Asked::List { request }
                | Asked::Claims { request, .. }
                | Asked::Read { request, .. }
                | Asked::Scan { request, .. },
                None,
            ) => request_failed(*request, kind),
            _ => unreachable!("what has no stream is a call"),
        }
    }

    fn lease(
        &mut self,
        request: RequestId,
        store: StoreId,
        end: Option<Timestamp>,
        how: &How,
        now: Timestamp,
    ) -> Event {
        let lease = self.stores.entry(store).or_default();
        let in_force = lease.is_some_and(|end| end > now);
        *lease = end;
        Event::LeaseUpdated {
            request,
            last_lease_is_valid: match how {
                How::Refuse(_) => false,
                How::Yes => true,
                _ => in_force,
            },
        }
    }

    fn answer_claims(
        &mut self,
        request: RequestId,
        store: StoreId,
        told: usize,
        how: &How,
    ) -> Event {
        let mut claims = self.claims(store);
        claims.drain(..told.min(claims.len()));
        match how {
            How::Refuse(_) => return request_failed(request, FailureKind::Unavailable),
            How::Partly => {
                // The rest is still to come.
                claims.truncate(1);
                let told = told + claims.len();
                self.outstanding.push(Asked::Claims {
                    request,
                    store,
                    told,
                });
            }
            How::WrongEpoch => {
                for claim in &mut claims {
                    claim.region.epoch = other(claim.region.epoch);
                }
            }
            How::Nameless => claims.clear(),
            _ => {}
        }
        Event::RegionsClaimed {
            request,
            claims,
            done: !matches!(how, How::Partly),
        }
    }

    fn answer_wait(
        &mut self,
        stream: RequestId,
        store: StoreId,
        target: WaitTarget,
        how: &How,
    ) -> Event {
        let result = self.judge(store, target, how, false);
        let target = match how {
            How::Nameless => None,
            How::WrongEpoch => Some(WaitTarget {
                epoch: other(target.epoch),
                ..target
            }),
            _ => Some(target),
        };
        Event::WaitApplyDone {
            stream,
            answers: vec![WaitAnswer { target, result }],
        }
    }

    fn judge(
        &self,
        store: StoreId,
        target: WaitTarget,
        how: &How,
        as_leader: bool,
    ) -> Result<(), RegionError> {
        if let How::Refuse(kind) = how {
            return no(*kind);
        }
        if matches!(how, How::Yes) {
            return Ok(());
        }
        match self.regions.get(&target.region_id.0) {
            None => no(RegionErrorKind::RegionNotFound),
            Some(state) if state.epoch != target.epoch => no(RegionErrorKind::EpochNotMatch),
            Some(state) if as_leader && state.leader != store => no(RegionErrorKind::NotLeader),
            Some(_) => Ok(()),
        }
    }
}

fn request_failed(request: RequestId, kind: FailureKind) -> Event {
    Event::RequestFailed {
        request,
        failure: failure(kind),
    }
}
