use snapshot_prepare::cluster::StreamRequest;
use snapshot_prepare::sim::model::{Answer, CallId, Cluster, Request};
use snapshot_prepare::time::Timestamp;

/// The model and the time, as a coordinator sees them.
pub(super) struct Line {
    pub(super) cluster: Cluster,
    pub(super) now: Timestamp,
    calls: u64,
}

impl Line {
    pub(super) fn new(cluster: Cluster, now: Timestamp) -> Self {
        Self {
            cluster,
            now,
            calls: 0,
        }
    }

    /// Makes a call.
    pub(super) fn call(&mut self, request: Request) -> CallId {
        let call = CallId(self.calls);
        self.calls += 1;
        self.cluster.handle_request(call, request, self.now);
        call
    }

    /// Sends something on a stream.
    pub(super) fn send(&mut self, stream: CallId, request: StreamRequest) {
        let request = Request::StreamSend(request);
        self.cluster.handle_request(stream, request, self.now);
    }

    /// Moves on to the next instant at which something happens, `due` at the
    /// latest; returns whether there is one. A client that is paused takes
    /// nothing in meanwhile.
    pub(super) fn advance(&mut self, due: Option<Timestamp>) -> bool {
        let next = [due, self.cluster.poll_timeout()];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        self.cluster.handle_timeout(self.now);
        while let Some(lasting) = self.cluster.poll_pause() {
            self.now = self.now + lasting;
            self.cluster.handle_timeout(self.now);
        }
        true
    }

    /// Returns the next answer that has arrived.
    pub(super) fn answer(&mut self) -> Option<(CallId, Answer)> {
        self.cluster.poll_answer()
    }
}
