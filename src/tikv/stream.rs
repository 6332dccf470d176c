use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream;
use tokio::sync::mpsc;
use tonic::{Response, Status, Streaming};

use super::chunks::Chunks;
use super::convert;
use super::dial::Connection;
use super::peer::Peer;
use super::region_error::region_error;
use super::split;
use super::status::Place;
use crate::cluster::{PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest};
use crate::error::{Failure, FailureKind};
use crate::pb::backup::backup_client::BackupClient;
use crate::pb::backup::{
    PrepareSnapshotBackupEventType, PrepareSnapshotBackupRequest, PrepareSnapshotBackupResponse,
};
use crate::region::{RegionId, WaitAnswer, WaitTarget};

/// How many messages wait for the transport. What waits here can no longer be
/// overtaken by a renewal, so it is as little as possible.
const QUEUE: usize = 1;

type Opened = Result<Response<Streaming<PrepareSnapshotBackupResponse>>, Status>;

/// The half of a prepare stream to a TiKV store that sends.
#[derive(Debug)]
pub struct TikvSender {
    messages: mpsc::Sender<PrepareSnapshotBackupRequest>,
    max_request_bytes: usize,
}

/// The half of a prepare stream to a TiKV store that receives.
pub struct TikvReceiver {
    state: State,
    peer: Arc<Peer>,
    connection: Arc<Connection>,
    /// How it ended, kept until what came before is handed over.
    ending: Option<Failure>,
}

enum State {
    /// The call is under way. A store sends its headers with its first answer,
    /// so it can stay so for long, with requests on their way meanwhile.
    Calling(Pin<Box<dyn Future<Output = Opened> + Send>>),
    Open(Box<Chunks<Streaming<PrepareSnapshotBackupResponse>, Status>>),
    Over,
}

/// Dials the store anew and issues the call.
pub(super) async fn open(
    peer: Arc<Peer>,
    max_request_bytes: usize,
    max_answer_bytes: usize,
) -> Result<(TikvSender, TikvReceiver), Failure> {
    let connection = peer.dial_stream().await?;
    let (messages, mut queue) = mpsc::channel(QUEUE);
    let requests = stream::poll_fn(move |cx| queue.poll_recv(cx));
    let mut client =
        BackupClient::new(connection.channel()).max_decoding_message_size(max_answer_bytes);
    let mut receiver = TikvReceiver {
        state: State::Calling(Box::pin(async move {
            client.prepare_snapshot_backup(requests).await
        })),
        peer,
        connection,
        ending: None,
    };
    receiver.issue().await?;
    let sender = TikvSender {
        messages,
        max_request_bytes,
    };
    Ok((sender, receiver))
}

impl PrepareSender for TikvSender {
    async fn send(&mut self, request: StreamRequest) -> Result<(), Failure> {
        for message in split::messages(request, self.max_request_bytes) {
            self.messages
                .send(message)
                .await
                .map_err(|_| Failure::new(FailureKind::Transport, "the stream is closed"))?;
        }
        Ok(())
    }
}

impl TikvReceiver {
    /// Hands the call to the connection, without waiting for the answer.
    async fn issue(&mut self) -> Result<(), Failure> {
        let State::Calling(call) = &mut self.state else {
            return Ok(());
        };
        match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            Poll::Pending => Ok(()),
            Poll::Ready(opened) => self.enter(opened),
        }
    }

    fn enter(&mut self, opened: Opened) -> Result<(), Failure> {
        match opened {
            Ok(response) => {
                self.peer.note_answer(&self.connection);
                self.state = State::Open(Box::new(Chunks::new(response.into_inner())));
                Ok(())
            }
            Err(status) => {
                self.state = State::Over;
                Err(self.judge(&status))
            }
        }
    }

    fn judge(&self, status: &Status) -> Failure {
        self.peer.judge(status, Place::Stream, &self.connection)
    }
}

impl PrepareReceiver for TikvReceiver {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        if let Some(failure) = self.ending.take() {
            self.state = State::Over;
            return Err(failure);
        }
        if let State::Calling(call) = &mut self.state {
            let opened = call.as_mut().await;
            self.enter(opened)?;
        }
        let State::Open(answers) = &mut self.state else {
            return Err(Failure::new(FailureKind::Other, "the stream is over"));
        };
        let batch = match answers.next().await {
            None => Err(Failure::new(FailureKind::Finished, "the stream ended well")),
            Some(Err(status)) => Err(self.peer.judge(&status, Place::Stream, &self.connection)),
            Some(Ok(batch)) => Ok(batch),
        };
        let batch = batch.inspect_err(|_| self.state = State::Over)?;
        let mut read = Vec::with_capacity(batch.len());
        for message in batch {
            match answer(message) {
                Ok(answer) => read.push(answer),
                Err(failure) => {
                    self.ending = Some(self.peer.named(failure));
                    break;
                }
            }
        }
        match self.ending.take() {
            Some(failure) if read.is_empty() => {
                self.state = State::Over;
                Err(failure)
            }
            ending => {
                self.ending = ending;
                Ok(read)
            }
        }
    }
}

impl fmt::Debug for TikvReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Calling(_) => "calling",
            State::Open(_) => "open",
            State::Over => "over",
        };
        f.debug_struct("TikvReceiver")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

pub(super) fn answer(message: PrepareSnapshotBackupResponse) -> Result<StreamAnswer, Failure> {
    match PrepareSnapshotBackupEventType::try_from(message.ty) {
        Ok(PrepareSnapshotBackupEventType::UpdateLeaseResult) => Ok(StreamAnswer::LeaseUpdated {
            last_lease_is_valid: message.last_lease_is_valid,
        }),
        Ok(PrepareSnapshotBackupEventType::WaitApplyDone) => {
            let target = message.region.map(|region| WaitTarget {
                region_id: RegionId(region.id),
                // An absent epoch is what zeros look like on the wire.
                epoch: convert::epoch(region.region_epoch.unwrap_or_default()),
            });
            let result = match message.error {
                None => Ok(()),
                Some(error) => Err(region_error(&error)),
            };
            Ok(StreamAnswer::WaitApplyDone(WaitAnswer { target, result }))
        }
        Err(_) => Err(Failure::new(
            FailureKind::Malformed,
            format!("an answer of the unknown type {} came", message.ty),
        )),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::region::RegionEpoch;

    fn read(bytes: &[u8]) -> Result<StreamAnswer, Failure> {
        answer(PrepareSnapshotBackupResponse::decode(bytes).expect("it is protobuf"))
    }

    /// Bytes that a real store sent.
    #[test]
    fn recorded_answers_are_understood() {
        let lease = |last_lease_is_valid| {
            Ok(StreamAnswer::LeaseUpdated {
                last_lease_is_valid,
            })
        };
        assert_eq!(read(&[0x08, 1]), lease(false));
        assert_eq!(read(&[0x08, 1, 0x20, 1]), lease(true));
        let wait = read(&[0x12, 9, 0x08, 0xec, 7, 0x22, 4, 0x08, 1, 0x10, 3]);
        let target = WaitTarget {
            region_id: RegionId(1004),
            epoch: RegionEpoch {
                conf_ver: 1,
                version: 3,
            },
        };
        assert_eq!(
            wait,
            Ok(StreamAnswer::WaitApplyDone(WaitAnswer {
                target: Some(target),
                result: Ok(()),
            }))
        );
    }

    #[test]
    fn an_answer_without_region_or_of_unknown_type_is_not_taken_for_success() {
        assert!(matches!(
            read(&[]),
            Ok(StreamAnswer::WaitApplyDone(WaitAnswer { target: None, .. }))
        ));
        let failure = read(&[0x08, 9]).expect_err("unknown");
        assert_eq!(failure.kind, FailureKind::Malformed);
    }
}
