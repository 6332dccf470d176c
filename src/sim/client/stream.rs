use std::collections::VecDeque;

use super::cluster::unexpected;
use crate::cluster::{PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest};
use crate::error::{Failure, FailureKind};
use crate::region::WaitAnswer;
use crate::sim::hub::Call;
use crate::sim::mapping::{from_region_error, from_status};
use crate::sim::model::{Answer, Request, StreamReply};

/// The sending half of a prepare stream of the simulated cluster.
#[derive(Debug)]
pub struct SimSender {
    call: Call,
}

/// The receiving half of a prepare stream of the simulated cluster. Dropping it
/// drops the stream.
#[derive(Debug)]
pub struct SimReceiver {
    call: Call,
    /// Arrived and not handed out: what came with the word that the stream is
    /// open, and how it ended after that.
    arrived: VecDeque<Answer>,
}

/// Waits until the store has the request headers, or has refused.
pub(super) async fn open(call: Call) -> Result<(SimSender, SimReceiver), Failure> {
    // Dropped by the caller meanwhile, the call is dropped with the future.
    let mut arrived = VecDeque::from(call.next().await);
    match arrived.pop_front() {
        Some(Answer::Opened) => {}
        Some(Answer::End(status)) => return Err(from_status(status)),
        _ => return Err(unexpected()),
    }
    let sender = SimSender { call: call.clone() };
    Ok((sender, SimReceiver { call, arrived }))
}

impl PrepareSender for SimSender {
    async fn send(&mut self, request: StreamRequest) -> Result<(), Failure> {
        if self.call.send(Request::StreamSend(request)) {
            Ok(())
        } else {
            Err(Failure::new(FailureKind::Transport, "the stream is closed"))
        }
    }
}

impl Drop for SimSender {
    fn drop(&mut self) {
        // Nothing, when the stream is over.
        self.call.send(Request::HalfClose);
    }
}

impl PrepareReceiver for SimReceiver {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        if self.arrived.is_empty() {
            self.arrived.extend(self.call.next().await);
        }
        let mut answers = Vec::with_capacity(self.arrived.len());
        while let Some(answer) = self.arrived.pop_front() {
            match answer {
                Answer::Stream(reply) => answers.push(read_reply(reply)),
                Answer::End(_) if !answers.is_empty() => {
                    self.arrived.push_front(answer);
                    break;
                }
                Answer::End(status) => return Err(from_status(status)),
                _ => return Err(unexpected()),
            }
        }
        Ok(answers)
    }
}

impl Drop for SimReceiver {
    fn drop(&mut self) {
        self.call.cancel();
    }
}

fn read_reply(reply: StreamReply) -> StreamAnswer {
    match reply {
        StreamReply::LeaseUpdated {
            last_lease_is_valid,
        } => StreamAnswer::LeaseUpdated {
            last_lease_is_valid,
        },
        StreamReply::WaitApplyDone { target, result, .. } => {
            StreamAnswer::WaitApplyDone(WaitAnswer {
                target: Some(target),
                result: result.map_err(from_region_error),
            })
        }
    }
}
