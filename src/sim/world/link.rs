use std::collections::{BTreeMap, VecDeque};

use crate::cluster::StreamRequest;
use crate::machine::{Effect, Event, RequestId};
use crate::region::{ReadAnswer, ReadTarget, StoreId, WaitAnswer};
use crate::sim::mapping::{from_region_error, from_status};
use crate::sim::model::{Answer, CallId, Cluster, ReadRequest, Request, StreamReply};
use crate::time::Timestamp;

/// Carries effects to the model and its answers back as events.
#[derive(Debug, Default)]
pub(super) struct Link {
    next_call: u64,
    calls: BTreeMap<CallId, Purpose>,
    streams: BTreeMap<RequestId, Stream>,
    /// Streams that the machine has closed, with the time at which the model
    /// hears of it: what arrives until then is a late answer.
    closing: VecDeque<(Timestamp, RequestId)>,
}

/// How long answers still come on a stream that was closed, at the most: what a
/// reader has taken in and not handed on.
const LAG_MICROS: u64 = 20_000;

#[derive(Debug)]
enum Purpose {
    Stores(RequestId),
    Scan(RequestId),
    Claims(RequestId),
    Read(RequestId, ReadTarget),
    Stream(RequestId),
}

#[derive(Debug)]
struct Stream {
    call: CallId,
    /// The numbers of the renewals, and of Finish, that are not answered.
    leases: VecDeque<RequestId>,
}

impl Link {
    fn call(&mut self, purpose: Purpose) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        self.calls.insert(call, purpose);
        call
    }

    /// Carries out an effect.
    pub(super) fn carry_out(&mut self, effect: Effect, cluster: &mut Cluster, now: Timestamp) {
        match effect {
            Effect::ListStores { request } => {
                let call = self.call(Purpose::Stores(request));
                cluster.handle_request(call, Request::ListStores, now);
            }
            Effect::ScanRegions {
                request,
                range,
                limit,
            } => {
                let call = self.call(Purpose::Scan(request));
                cluster.handle_request(call, Request::ScanRegions { range, limit }, now);
            }
            Effect::ListClaims { request, store } => {
                let call = self.call(Purpose::Claims(request));
                let store = store.id;
                cluster.handle_request(call, Request::ListClaims { store }, now);
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                for target in regions {
                    let call = self.call(Purpose::Read(request, target));
                    let read = read_request(store.id, &target);
                    let store = store.id;
                    cluster.handle_request(call, Request::LeaderRead { store, read }, now);
                }
            }
            Effect::OpenStream { stream, store } => {
                let call = self.call(Purpose::Stream(stream));
                let leases = VecDeque::new();
                self.streams.insert(stream, Stream { call, leases });
                let store = store.id;
                cluster.handle_request(call, Request::OpenStream { store }, now);
            }
            Effect::UpdateLease {
                request,
                stream,
                seconds,
                ..
            } => {
                let update = StreamRequest::UpdateLease { seconds };
                self.send(stream, Some(request), update, cluster, now);
            }
            Effect::WaitApply {
                stream, regions, ..
            } => {
                let wait = StreamRequest::WaitApply { regions };
                self.send(stream, None, wait, cluster, now);
            }
            Effect::Finish {
                request, stream, ..
            } => self.send(stream, Some(request), StreamRequest::Finish, cluster, now),
            Effect::CloseStream { stream, .. } => {
                if let Some(Stream { call, .. }) = self.streams.get(&stream) {
                    // Any spread will do, as long as it is the same each time.
                    let lag = call.0.wrapping_mul(0x9e37_79b9) % LAG_MICROS;
                    let due = now + std::time::Duration::from_micros(lag);
                    self.closing.push_back((due, stream));
                }
            }
        }
    }

    /// Drops the streams that were closed a while ago.
    pub(super) fn drop_closed(&mut self, cluster: &mut Cluster, now: Timestamp) {
        while let Some(&(due, stream)) = self.closing.front()
            && due <= now
        {
            self.closing.pop_front();
            if let Some(Stream { call, .. }) = self.streams.remove(&stream) {
                self.calls.remove(&call);
                cluster.handle_request(call, Request::Cancel, now);
            }
        }
    }

    fn send(
        &mut self,
        stream: RequestId,
        number: Option<RequestId>,
        request: StreamRequest,
        cluster: &mut Cluster,
        now: Timestamp,
    ) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.leases.extend(number);
            cluster.handle_request(stream.call, Request::StreamSend(request), now);
        }
    }

    /// Reads an answer; `None` when nobody waits for it.
    pub(super) fn read(&mut self, call: CallId, answer: Answer) -> Option<Event> {
        match *self.calls.get(&call)? {
            Purpose::Stores(request) | Purpose::Scan(request) => {
                self.calls.remove(&call);
                Some(match answer {
                    Answer::Stores(stores) => Event::StoresListed { request, stores },
                    Answer::Regions(regions) => Event::RegionsScanned { request, regions },
                    other => failed(request, other)?,
                })
            }
            Purpose::Claims(request) => match answer {
                Answer::Claims(claims) => Some(Event::RegionsClaimed {
                    request,
                    claims,
                    done: false,
                }),
                Answer::End(status) if status.code == crate::sim::model::Code::Ok => {
                    self.calls.remove(&call);
                    Some(Event::RegionsClaimed {
                        request,
                        claims: Vec::new(),
                        done: true,
                    })
                }
                other => {
                    self.calls.remove(&call);
                    failed(request, other)
                }
            },
            Purpose::Read(request, target) => self.read_done(call, request, target, answer),
            Purpose::Stream(stream) => self.stream_answer(call, stream, answer),
        }
    }

    fn read_done(
        &mut self,
        call: CallId,
        request: RequestId,
        target: ReadTarget,
        answer: Answer,
    ) -> Option<Event> {
        self.calls.remove(&call);
        let Answer::Read(result) = answer else {
            // One failure stands for all that the request has not had answered.
            self.calls
                .retain(|_, purpose| !matches!(purpose, Purpose::Read(of, _) if *of == request));
            return failed(request, answer);
        };
        let answer = ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result: result.map_err(from_region_error),
        };
        Some(Event::LeaderReadDone {
            request,
            answers: vec![answer],
        })
    }

    fn stream_answer(&mut self, call: CallId, stream: RequestId, answer: Answer) -> Option<Event> {
        Some(match answer {
            Answer::Opened => Event::StreamOpened { stream },
            Answer::Stream(StreamReply::LeaseUpdated {
                last_lease_is_valid,
            }) => Event::LeaseUpdated {
                request: self.streams.get_mut(&stream)?.leases.pop_front()?,
                last_lease_is_valid,
            },
            Answer::Stream(StreamReply::WaitApplyDone { target, result, .. }) => {
                let answer = WaitAnswer {
                    target: Some(target),
                    result: result.map_err(from_region_error),
                };
                Event::WaitApplyDone {
                    stream,
                    answers: vec![answer],
                }
            }
            Answer::End(status) => {
                self.calls.remove(&call);
                self.streams.remove(&stream);
                Event::StreamEnded {
                    stream,
                    reason: from_status(status),
                }
            }
            _ => return None,
        })
    }
}

fn failed(request: RequestId, answer: Answer) -> Option<Event> {
    match answer {
        Answer::End(status) => Some(Event::RequestFailed {
            request,
            failure: from_status(status),
        }),
        _ => None,
    }
}

fn read_request(store: StoreId, target: &ReadTarget) -> ReadRequest {
    ReadRequest {
        region_id: target.region_id,
        epoch: target.epoch,
        peer_id: target.peer_id,
        peer_store: store,
        ..ReadRequest::default()
    }
}
