use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tonic::{Status, Streaming};

use super::outcome::{Outcome, judge_kv, judge_raw};
use super::reader::Reader;
use crate::error::Failure;
use crate::pb::tikvpb::tikv_client::TikvClient;
use crate::pb::tikvpb::{
    BatchCommandsRequest, BatchCommandsResponse, batch_commands_request, batch_commands_response,
};
use crate::region::{ReadAnswer, ReadTarget};
use crate::tikv::chunks::Chunks;
use crate::tikv::dial::Connection;
use crate::tikv::status::Place;

use batch_commands_request::request;
use batch_commands_response::response;

/// How long there may be room that is not worth a message by itself until it is
/// used all the same: what fills the rest may hang.
const LINGER: Duration = Duration::from_millis(250);

type Requests = mpsc::UnboundedSender<BatchCommandsRequest>;
type Answers = Chunks<Streaming<BatchCommandsResponse>, Status>;
type Opening = Pin<Box<dyn Future<Output = Result<Opened, Failure>> + Send>>;

/// A call of `BatchCommands` that reads from some targets and then ends.
///
/// The request side is closed with the last request: a store answers what it
/// has and ends the call then, also where it dropped a request, so that a read
/// without an answer is known at once.
pub(super) struct Batch {
    reader: Arc<Reader>,
    /// Whether by `RawBatchGet`.
    raw: bool,
    /// What to read from; a target's place is its number on the wire.
    targets: Arc<[ReadTarget]>,
    /// Which of the targets have no answer yet.
    unanswered: Vec<bool>,
    progress: Progress,
    call: Call,
    /// Those that the store would not take in this way.
    refused: Vec<ReadTarget>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    sent: usize,
    answered: usize,
    /// The most that are sent and not answered.
    most: usize,
    /// When the room that there is will be used, however little it is.
    flush_at: Option<Instant>,
}

enum Call {
    /// A store sends its headers with its first answer.
    Opening(Opening),
    Open(Box<Opened>),
    /// It never came about.
    Failed(Failure),
}

/// A call that was answered.
struct Opened {
    /// Gone once all targets were sent.
    requests: Option<Requests>,
    answers: Answers,
    connection: Arc<Connection>,
}

impl Batch {
    pub(super) fn new(
        reader: Arc<Reader>,
        connection: Arc<Connection>,
        targets: Vec<ReadTarget>,
        in_flight: usize,
    ) -> Self {
        let targets: Arc<[ReadTarget]> = targets.into();
        let raw = reader.manner.raw();
        let sent = targets.len().min(in_flight);
        let first = First {
            reader: Arc::clone(&reader),
            raw,
            targets: Arc::clone(&targets),
            sent,
        };
        Self {
            call: Call::Opening(Box::pin(first.open(connection))),
            reader,
            raw,
            unanswered: vec![true; targets.len()],
            targets,
            progress: Progress {
                sent,
                answered: 0,
                most: in_flight,
                flush_at: None,
            },
            refused: Vec::new(),
        }
    }

    /// Returns the answers that have arrived, maybe none, or `None` at the end.
    ///
    /// # Cancel safety
    /// Dropping the future loses no answer.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        if let Call::Opening(opening) = &mut self.call {
            self.call = match opening.await {
                Ok(opened) => Call::Open(Box::new(opened)),
                Err(failure) => Call::Failed(failure),
            };
        }
        let opened = match &mut self.call {
            Call::Open(opened) => opened,
            Call::Failed(failure) => return Some(Err(failure.clone())),
            Call::Opening(_) => return None,
        };
        let peer = &self.reader.peer;
        let found = match self.progress.flush_at {
            None => opened.answers.next().await,
            Some(at) => match timeout_at(at, opened.answers.next()).await {
                Ok(found) => found,
                Err(_) => {
                    self.send_more(1);
                    return Some(Ok(Vec::new()));
                }
            },
        };
        match found? {
            Err(status) => Some(Err(peer.judge(&status, Place::Read, &opened.connection))),
            Ok(messages) => {
                peer.note_answer(&opened.connection);
                Some(Ok(self.take(messages)))
            }
        }
    }

    /// Returns whether any read was answered.
    pub(super) const fn is_answered(&self) -> bool {
        self.progress.answered > 0
    }

    /// Returns the targets whose reads the store would not take in this way.
    pub(super) fn refused(&self) -> Vec<ReadTarget> {
        self.refused.clone()
    }

    pub(super) fn targets(&self) -> Vec<ReadTarget> {
        self.targets.to_vec()
    }

    fn take(&mut self, messages: Vec<BatchCommandsResponse>) -> Vec<ReadAnswer> {
        let mut answers = Vec::new();
        for message in messages {
            for (number, response) in message.request_ids.into_iter().zip(message.responses) {
                answers.extend(self.judge(number, response));
            }
        }
        let worth_it = self.progress.most.div_ceil(8);
        self.send_more(worth_it);
        answers
    }

    /// Returns `None` for the answer to something else, and for one that says
    /// that the read has to be asked in another way.
    fn judge(
        &mut self,
        number: u64,
        response: batch_commands_response::Response,
    ) -> Option<ReadAnswer> {
        let place = usize::try_from(number).ok()?;
        let unanswered = self.unanswered.get_mut(place)?;
        if place >= self.progress.sent || !std::mem::take(unanswered) {
            return None;
        }
        self.progress.answered += 1;
        let target = self.targets.get(place)?;
        let outcome = match response.cmd {
            Some(response::Cmd::BatchGet(answer)) if !self.raw => judge_kv(answer),
            Some(response::Cmd::RawBatchGet(answer)) if self.raw => judge_raw(answer),
            // What a store says to a command that it does not know.
            _ => {
                self.reader.manner.note_refused();
                self.refused.push(*target);
                return None;
            }
        };
        if matches!(outcome, Outcome::WrongApiVersion) {
            self.reader.manner.set_raw(!self.raw);
            self.refused.push(*target);
            return None;
        }
        Some(outcome.answer(target))
    }

    /// Sends what there is room for, if that is at least so much.
    fn send_more(&mut self, least: usize) {
        let Call::Open(opened) = &mut self.call else {
            return;
        };
        let Progress {
            sent,
            answered,
            most,
            flush_at,
        } = self.progress;
        let room = most - (sent - answered);
        self.progress.flush_at = None;
        if let Some(requests) = &opened.requests
            && room >= least
        {
            let end = self.targets.len().min(sent + room);
            let more = request(&self.reader, self.raw, &self.targets[sent..end], sent);
            // A call that is over says so where its answers come from.
            let _ = requests.send(more);
            self.progress.sent = end;
        } else if room > 0 {
            self.progress.flush_at = flush_at.or_else(|| Some(Instant::now() + LINGER));
        }
        if self.progress.sent == self.targets.len() {
            opened.requests = None;
            self.progress.flush_at = None;
        }
    }
}

/// The first request of a call.
struct First {
    reader: Arc<Reader>,
    raw: bool,
    targets: Arc<[ReadTarget]>,
    sent: usize,
}

impl First {
    /// Makes the call and waits for the first answer.
    async fn open(self, connection: Arc<Connection>) -> Result<Opened, Failure> {
        let limit = self.reader.max_answer_bytes;
        let peer = &self.reader.peer;
        let call = |channel| {
            let (requests, mut queue) = mpsc::unbounded_channel();
            let first = request(&self.reader, self.raw, &self.targets[..self.sent], 0);
            // The queue is there.
            let _ = requests.send(first);
            let requests = (self.sent < self.targets.len()).then_some(requests);
            let sent = stream::poll_fn(move |cx| queue.poll_recv(cx));
            async move {
                let mut client = TikvClient::new(channel).max_decoding_message_size(limit);
                let answers = client.batch_commands(sent).await?.into_inner();
                Ok((requests, answers))
            }
        };
        let ((requests, answers), connection) = peer.call_on(connection, Place::Read, call).await?;
        Ok(Opened {
            requests,
            answers: Chunks::new(answers),
            connection,
        })
    }
}

/// Returns the reads from some targets in a message, numbered from `first` on.
fn request(
    reader: &Reader,
    raw: bool,
    targets: &[ReadTarget],
    first: usize,
) -> BatchCommandsRequest {
    let read = |target| {
        let cmd = if raw {
            request::Cmd::RawBatchGet(reader.raw(target))
        } else {
            request::Cmd::BatchGet(reader.kv(target))
        };
        batch_commands_request::Request { cmd: Some(cmd) }
    };
    let first = first as u64;
    BatchCommandsRequest {
        requests: targets.iter().map(read).collect(),
        request_ids: (first..first + targets.len() as u64).collect(),
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("raw", &self.raw)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
