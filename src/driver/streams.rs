use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::task::{AbortHandle, JoinSet};
use tracing::Instrument as _;

use super::board::{Board, Line};
use super::inbox::EventSender;
use super::panic::{join_failure, panic_failure};
use super::queue::WriteQueue;
use crate::cluster::{ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest};
use crate::error::{Failure, FailureKind};
use crate::machine::{Event, RequestId};
use crate::region::{Store, WaitAnswer};

/// The prepare streams, open or being opened.
///
/// Per stream one task dials and then reads, and another one writes; neither
/// waits for the other. The loop puts requests into the stream's queue.
#[derive(Debug)]
pub(super) struct Streams<C> {
    cluster: Arc<C>,
    events: EventSender,
    board: Arc<Board>,
    open: BTreeMap<RequestId, Stream>,
}

#[derive(Debug)]
struct Stream {
    queue: Arc<WriteQueue>,
    task: AbortHandle,
}

impl<C: ClusterClient> Streams<C> {
    pub(super) fn new(cluster: Arc<C>, events: EventSender, board: Arc<Board>) -> Self {
        Self {
            cluster,
            events,
            board,
            open: BTreeMap::new(),
        }
    }

    /// Dials a store and opens a stream. Its last event is `StreamEnded`.
    pub(super) fn open(&mut self, tasks: &mut JoinSet<()>, stream: RequestId, store: Store) {
        let queue = Arc::new(WriteQueue::default());
        let span = tracing::debug_span!("prepare_stream", store_id = %store.id);
        let work = run(
            Arc::clone(&self.cluster),
            stream,
            store,
            Arc::clone(&queue),
            self.events.clone(),
            Arc::clone(&self.board),
        );
        let task = tasks.spawn(work.instrument(span));
        self.open.insert(stream, Stream { queue, task });
    }

    /// Returns where to put requests for a stream, `None` when it ended.
    pub(super) fn queue(&self, stream: RequestId) -> Option<&WriteQueue> {
        self.open.get(&stream).map(|stream| &*stream.queue)
    }

    /// Drops a stream, also one whose dial is under way, and all that waits to
    /// be written there.
    pub(super) fn close(&mut self, stream: RequestId) {
        if let Some(stream) = self.open.remove(&stream) {
            stream.task.abort();
        }
    }
}

/// Runs one stream to its end and tells how it ended, also when the client
/// panics.
async fn run<C: ClusterClient>(
    cluster: Arc<C>,
    stream: RequestId,
    store: Store,
    queue: Arc<WriteQueue>,
    events: EventSender,
    board: Arc<Board>,
) {
    let store_id = store.id;
    let work = dial_and_read(&*cluster, stream, &store, queue, &events, &board);
    let reason = AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| panic_failure("the reader of a prepare stream", &*panic, &board));
    board.line(Line::StreamEnded {
        store_id,
        kind: reason.kind,
        message: reason.message.clone(),
    });
    // Fails only when the loop is gone, and then nobody wants to know.
    let _ = events
        .send(vec![Event::StreamEnded { stream, reason }])
        .await;
}

async fn dial_and_read<C: ClusterClient>(
    cluster: &C,
    stream: RequestId,
    store: &Store,
    queue: Arc<WriteQueue>,
    events: &EventSender,
    board: &Arc<Board>,
) -> Failure {
    let (sender, receiver) = match cluster.open_stream(store).await {
        Ok(halves) => halves,
        Err(failure) => return failure,
    };
    board.line(Line::StreamOpened { store_id: store.id });
    let opened = vec![Event::StreamOpened { stream }];
    if events.send(opened).await.is_err() {
        return loop_is_gone();
    }
    // A set of its own, so that the writer goes when this task does.
    let mut writer = JoinSet::new();
    writer.spawn(write(sender, Arc::clone(&queue)).in_current_span());
    let reading = read(receiver, stream, &queue, events);
    tokio::select! {
        reason = reading => reason,
        Some(result) = writer.join_next() => match result {
            Ok(never) => match never {},
            Err(error) => join_failure("the writer of a prepare stream", error, board),
        },
    }
}

/// Writes what the queue holds, and keeps the request side open until the task
/// is aborted: closing it makes the store end the stream.
async fn write(mut sender: impl PrepareSender, queue: Arc<WriteQueue>) -> std::convert::Infallible {
    loop {
        let request = queue.next().await;
        let is_finish = request == StreamRequest::Finish;
        // A failed send says nothing that counts: how the stream ended comes
        // from the reading half.
        if sender.send(request).await.is_err() || is_finish {
            return std::future::pending().await;
        }
    }
}

/// Reads until the stream ends and returns how it did. What arrived goes to the
/// loop, which never waits for anything, so neither does reading for long.
async fn read(
    mut receiver: impl PrepareReceiver,
    stream: RequestId,
    queue: &WriteQueue,
    events: &EventSender,
) -> Failure {
    loop {
        let answers = match receiver.next().await {
            Ok(answers) => answers,
            Err(reason) => return reason,
        };
        let (batch, broken) = translate(stream, answers, queue);
        if events.send(batch).await.is_err() {
            return loop_is_gone();
        }
        if let Some(reason) = broken {
            return reason;
        }
    }
}

/// Turns answers into events, in order. A lease answer carries no number: it
/// belongs to the oldest lease request that was written and not answered. One
/// that belongs to none ends the stream, since no later one could be trusted.
fn translate(
    stream: RequestId,
    answers: Vec<StreamAnswer>,
    queue: &WriteQueue,
) -> (Vec<Event>, Option<Failure>) {
    let mut events = Vec::new();
    let mut waits = Vec::new();
    for answer in answers {
        match answer {
            StreamAnswer::WaitApplyDone(answer) => waits.push(answer),
            StreamAnswer::LeaseUpdated {
                last_lease_is_valid,
            } => {
                push_waits(stream, &mut waits, &mut events);
                let Some(request) = queue.answered() else {
                    let reason = Failure::new(
                        FailureKind::Malformed,
                        "the store answered a lease request that was not made",
                    );
                    return (events, Some(reason));
                };
                events.push(Event::LeaseUpdated {
                    request,
                    last_lease_is_valid,
                });
            }
        }
    }
    push_waits(stream, &mut waits, &mut events);
    (events, None)
}

fn push_waits(stream: RequestId, waits: &mut Vec<WaitAnswer>, events: &mut Vec<Event>) {
    if !waits.is_empty() {
        events.push(Event::WaitApplyDone {
            stream,
            answers: std::mem::take(waits),
        });
    }
}

fn loop_is_gone() -> Failure {
    Failure::new(FailureKind::Cancelled, "the driver is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: RequestId = RequestId(1);

    fn lease(last_lease_is_valid: bool) -> StreamAnswer {
        StreamAnswer::LeaseUpdated {
            last_lease_is_valid,
        }
    }

    fn wait() -> WaitAnswer {
        WaitAnswer {
            target: None,
            result: Ok(()),
        }
    }

    fn waits(count: usize) -> Event {
        Event::WaitApplyDone {
            stream: STREAM,
            answers: vec![wait(); count],
        }
    }

    #[tokio::test]
    async fn answers_keep_their_order_and_waits_come_in_batches() {
        let queue = WriteQueue::default();
        queue.update_lease(RequestId(5), 10);
        queue.next().await;
        let answers = vec![
            StreamAnswer::WaitApplyDone(wait()),
            StreamAnswer::WaitApplyDone(wait()),
            lease(true),
            StreamAnswer::WaitApplyDone(wait()),
        ];
        let updated = Event::LeaseUpdated {
            request: RequestId(5),
            last_lease_is_valid: true,
        };
        assert_eq!(
            translate(STREAM, answers, &queue),
            (vec![waits(2), updated, waits(1)], None)
        );
    }

    #[test]
    fn an_answer_to_a_lease_request_that_was_not_written_ends_the_stream() {
        let queue = WriteQueue::default();
        queue.update_lease(RequestId(5), 10);
        let answers = vec![StreamAnswer::WaitApplyDone(wait()), lease(true)];
        let (events, reason) = translate(STREAM, answers, &queue);
        assert_eq!(events, [waits(1)]);
        assert_eq!(
            reason.map(|reason| reason.kind),
            Some(FailureKind::Malformed)
        );
    }
}
