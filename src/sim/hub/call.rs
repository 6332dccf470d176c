use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Hub;
use super::inbox::Inbox;
use crate::sim::model::{Answer, CallId, Request};

/// Calls whose answers arrive together. Dropping it drops the calls.
#[derive(Debug)]
pub(in crate::sim) struct Group {
    hub: Hub,
    inbox: Arc<Inbox>,
    calls: Vec<CallId>,
}

impl Group {
    pub(super) fn new(hub: Hub, inbox: Arc<Inbox>, calls: Vec<CallId>) -> Self {
        Self { hub, inbox, calls }
    }

    /// Returns the numbers of the calls, in the order in which they were made.
    pub(in crate::sim) fn calls(&self) -> &[CallId] {
        &self.calls
    }

    /// Makes one more call and returns its number.
    pub(in crate::sim) fn call(&mut self, request: Request) -> Option<CallId> {
        self.call_all([request]).pop()
    }

    /// Makes more calls and returns their numbers, in the same order.
    pub(in crate::sim) fn call_all(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Vec<CallId> {
        let calls = self.hub.open(&self.inbox, requests);
        self.calls.extend(&calls);
        calls
    }

    /// Waits for answers; never returns none at all. Nothing comes when all
    /// calls are over.
    pub(in crate::sim) async fn next(&mut self) -> Vec<(CallId, Answer)> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// As [`Group::next`].
    pub(in crate::sim) fn poll(&self, cx: &mut Context<'_>) -> Poll<Vec<(CallId, Answer)>> {
        self.inbox.poll(cx)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.hub.cancel(&self.calls);
    }
}

/// One call, or one stream. Dropping the last handle drops the call.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Call(Arc<Group>);

impl Call {
    /// Makes a call.
    pub(in crate::sim) fn new(hub: &Hub, request: Request) -> Self {
        Self(Arc::new(hub.call_all([request])))
    }

    /// Sends something on a stream; returns whether it is still open.
    pub(in crate::sim) fn send(&self, request: Request) -> bool {
        self.0
            .calls
            .first()
            .is_some_and(|&call| self.0.hub.send(call, request))
    }

    /// Drops the call before the last handle is.
    pub(in crate::sim) fn cancel(&self) {
        self.0.hub.cancel(&self.0.calls);
    }

    /// Waits for answers; never returns none at all. Only one handle may do so
    /// at a time, and nothing comes when the call is over.
    pub(in crate::sim) async fn next(&self) -> Vec<Answer> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// As [`Call::next`].
    pub(in crate::sim) fn poll(&self, cx: &mut Context<'_>) -> Poll<Vec<Answer>> {
        self.0
            .inbox
            .poll(cx)
            .map(|answers| answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// Waits for the only answer of a call that has one.
    pub(in crate::sim) async fn only(&self) -> Option<Answer> {
        self.next().await.into_iter().next()
    }
}
