use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tonic::{Status, Streaming};

use super::reads::{kv_answer, raw_answer};
use super::replies;
use super::socket::Breaker;
use super::store::StoreService;
use crate::pb::tikvpb::batch_commands_request::{Request, request};
use crate::pb::tikvpb::batch_commands_response::{Response, response};
use crate::pb::tikvpb::{BatchCommandsRequest, BatchCommandsResponse};
use crate::sim::hub::Group;
use crate::sim::model::{Answer, CallId, ReadKind, Request as Ask};

/// One call of `BatchCommands`: reads by the message, answered as they come, each
/// message of answers with all that are ready. It ends once the client has
/// closed its side and all is answered. Commands other than the two reads get
/// what a real store says to those that it does not know: an empty answer.
pub(super) struct ReadBatch {
    service: StoreService,
    breaker: Breaker,
    /// Gone once the client has closed its side.
    requests: Option<Streaming<BatchCommandsRequest>>,
    reads: Group,
    /// The number of each read on the wire, and its kind.
    open: BTreeMap<CallId, (u64, ReadKind)>,
    is_over: bool,
}

impl ReadBatch {
    pub(super) fn new(
        service: StoreService,
        breaker: Breaker,
        requests: Streaming<BatchCommandsRequest>,
    ) -> Self {
        Self {
            reads: service.hub.call_all([]),
            service,
            breaker,
            requests: Some(requests),
            open: BTreeMap::new(),
            is_over: false,
        }
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BatchCommandsResponse, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut answers = BatchCommandsResponse::default();
        if let Err(status) = self.take_requests(cx, &mut answers) {
            return self.end(status);
        }
        while let Poll::Ready(found) = self.reads.poll(cx) {
            for (call, answer) in found {
                if let Err(status) = self.take_answer(call, answer, &mut answers) {
                    if replies::is_break(&status) {
                        self.breaker.trip();
                        return Poll::Pending;
                    }
                    return self.end(super::convert::status(status));
                }
            }
        }
        if !answers.request_ids.is_empty() {
            return Poll::Ready(Some(Ok(answers)));
        }
        self.is_over = self.requests.is_none() && self.open.is_empty();
        if self.is_over {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }

    fn end(&mut self, status: Status) -> Poll<Option<Result<BatchCommandsResponse, Status>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(status)))
    }

    /// Asks the model for what has arrived.
    fn take_requests(
        &mut self,
        cx: &mut Context<'_>,
        answers: &mut BatchCommandsResponse,
    ) -> Result<(), Status> {
        while let Some(requests) = &mut self.requests {
            match Pin::new(requests).poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => self.requests = None,
                Poll::Ready(Some(message)) => self.ask(message?, answers)?,
            }
        }
        Ok(())
    }

    fn ask(
        &mut self,
        message: BatchCommandsRequest,
        answers: &mut BatchCommandsResponse,
    ) -> Result<(), Status> {
        let mut asked: Vec<Ask> = Vec::new();
        let mut numbers = Vec::new();
        for (number, request) in message.request_ids.into_iter().zip(message.requests) {
            match read_of(request) {
                Some((context, kind)) => {
                    asked.push(self.service.read_request(context, kind)?);
                    numbers.push((number, kind));
                }
                None => push(answers, number, None),
            }
        }
        let calls = self.reads.call_all(asked);
        self.open.extend(calls.into_iter().zip(numbers));
        Ok(())
    }

    fn take_answer(
        &mut self,
        call: CallId,
        answer: Answer,
        answers: &mut BatchCommandsResponse,
    ) -> Result<(), crate::sim::model::Status> {
        let Some((number, kind)) = self.open.remove(&call) else {
            return Ok(());
        };
        match answer {
            Answer::Read(result) => {
                let answer = match kind {
                    ReadKind::KvBatchGet => response::Cmd::BatchGet(kv_answer(result)),
                    ReadKind::RawBatchGet => response::Cmd::RawBatchGet(raw_answer(result)),
                };
                push(answers, number, Some(answer));
                Ok(())
            }
            Answer::End(status) => Err(status),
            _ => Ok(()),
        }
    }
}

impl Stream for ReadBatch {
    type Item = Result<BatchCommandsResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(cx)
    }
}

fn read_of(request: Request) -> Option<(crate::pb::kvrpcpb::Context, ReadKind)> {
    match request.cmd? {
        request::Cmd::BatchGet(read) => {
            Some((read.context.unwrap_or_default(), ReadKind::KvBatchGet))
        }
        request::Cmd::RawBatchGet(read) => {
            Some((read.context.unwrap_or_default(), ReadKind::RawBatchGet))
        }
    }
}

fn push(answers: &mut BatchCommandsResponse, number: u64, cmd: Option<response::Cmd>) {
    answers.request_ids.push(number);
    answers.responses.push(Response { cmd });
}
