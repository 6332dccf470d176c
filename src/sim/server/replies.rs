use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::task::AbortHandle;
use tonic::{Response, Status};

use super::convert;
use super::socket::Breaker;
use crate::sim::hub::Call;
use crate::sim::model::{self, Answer, Code};

/// The answers of a call as a stream of messages. Dropping it drops the call.
#[derive(Debug)]
pub(super) struct Replies<T, R> {
    call: Call,
    breaker: Breaker,
    /// The task that reads what the client sends, where it sends a stream.
    reader: Option<AbortHandle>,
    ready: VecDeque<T>,
    /// How it ended, when that is all that is left.
    ended: Option<model::Status>,
    over: bool,
    read: R,
}

impl<T, R: FnMut(Answer) -> Vec<T> + Unpin> Replies<T, R> {
    /// `read` makes messages of an answer that is not the end.
    pub(super) fn new(call: Call, breaker: Breaker, reader: Option<AbortHandle>, read: R) -> Self {
        Self {
            call,
            breaker,
            reader,
            ready: VecDeque::new(),
            ended: None,
            over: false,
            read,
        }
    }

    /// Waits for the first message, since headers leave together with it, or
    /// for the end: a call that ends without a message has no headers of its
    /// own, only a status.
    pub(super) async fn start(mut self) -> Result<Response<Self>, Status> {
        while self.ready.is_empty() {
            if let Some(ended) = self.ended.take() {
                self.over = true;
                return Err(end(ended, &self.breaker).await);
            }
            let answers = self.call.next().await;
            self.take(answers);
        }
        Ok(Response::new(self))
    }

    fn take(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            match answer {
                Answer::End(status) => self.ended = Some(status),
                answer => self.ready.extend((self.read)(answer)),
            }
        }
    }
}

/// Returns the status that is sent at the end. Where the connection breaks
/// there is none: then it never returns.
pub(super) async fn end(status: model::Status, breaker: &Breaker) -> Status {
    if is_break(&status) {
        breaker.trip();
        pending::<()>().await;
    }
    convert::status(status)
}

/// Returns whether no word is sent but the connection ends: the network broke,
/// or the store went down.
pub(super) fn is_break(status: &model::Status) -> bool {
    match status.code {
        Code::Unknown => true,
        Code::Unavailable => status.message == "Socket closed",
        _ => false,
    }
}

impl<T: Unpin, R: FnMut(Answer) -> Vec<T> + Unpin> Stream for Replies<T, R> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(message) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(ended) = &this.ended {
                if is_break(ended) {
                    this.breaker.trip();
                    return Poll::Pending;
                }
                this.over = true;
                let status = convert::status(ended.clone());
                return Poll::Ready((status.code() != tonic::Code::Ok).then_some(Err(status)));
            }
            match this.call.poll(cx) {
                Poll::Ready(answers) => this.take(answers),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<T, R> Drop for Replies<T, R> {
    fn drop(&mut self) {
        self.call.cancel();
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}
