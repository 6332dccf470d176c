use tokio::sync::mpsc;

use crate::machine::{Event, RequestId};

use super::calls::CallKind;

/// Sends what a prepare stream brought.
pub(super) type EventSender = mpsc::Sender<Vec<Event>>;
/// Sends what a call brought.
pub(super) type CallSender = mpsc::Sender<CallInput>;

/// What a call brings to the loop.
#[derive(Debug)]
pub(super) enum CallInput {
    /// An answer, or the failure.
    Event(Event),
    /// The call is over.
    Ended(CallKind, RequestId),
}

/// Batches that may wait in the lane of the streams, all stores together.
const STREAM_LANE: usize = 1024;
/// Batches that may wait in the lane of the calls.
const CALL_LANE: usize = 64;
/// Batches taken from the lane of the streams before the other one has its turn.
const STREAM_TURN: usize = 128;
/// Batches taken from the lane of the calls before the other one has its turn.
const CALL_TURN: usize = 8;

/// Where events wait for the loop, in two lanes.
///
/// Lease answers come in the lane of the streams, which is looked at first;
/// listings, which can hold millions of regions, come in the other. Both lanes
/// are bounded, so that a peer that floods fills no memory: a task with a full
/// lane before it stops reading, which makes the transport stop the peer. It
/// stops only for as long as the loop needs to handle what is in the lane, and
/// the loop never waits for anybody.
#[derive(Debug)]
pub(super) struct Inbox {
    streams: mpsc::Receiver<Vec<Event>>,
    calls: mpsc::Receiver<CallInput>,
    stream_turn: Vec<Vec<Event>>,
    call_turn: Vec<CallInput>,
}

/// What a turn at the inbox brought.
#[derive(Debug)]
pub(super) enum Taken {
    /// From the streams.
    Stream(Vec<Event>),
    /// From the calls.
    Call(CallInput),
}

impl Inbox {
    /// Returns an inbox and the entries of its lanes.
    pub(super) fn new() -> (Self, EventSender, CallSender) {
        let (stream_sender, streams) = mpsc::channel(STREAM_LANE);
        let (call_sender, calls) = mpsc::channel(CALL_LANE);
        let inbox = Self {
            streams,
            calls,
            stream_turn: Vec::new(),
            call_turn: Vec::new(),
        };
        (inbox, stream_sender, call_sender)
    }

    /// Waits until something is there.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn filled(&mut self) {
        if !self.stream_turn.is_empty() || !self.call_turn.is_empty() {
            return;
        }
        tokio::select! {
            biased;
            _ = self.streams.recv_many(&mut self.stream_turn, STREAM_TURN) => {}
            _ = self.calls.recv_many(&mut self.call_turn, CALL_TURN) => {}
        }
    }

    /// Returns what is there, one turn of each lane, the streams first.
    pub(super) fn take(&mut self) -> Vec<Taken> {
        while self.stream_turn.len() < STREAM_TURN {
            match self.streams.try_recv() {
                Ok(batch) => self.stream_turn.push(batch),
                Err(_) => break,
            }
        }
        while self.call_turn.len() < CALL_TURN {
            match self.calls.try_recv() {
                Ok(input) => self.call_turn.push(input),
                Err(_) => break,
            }
        }
        let streams = self.stream_turn.drain(..).map(Taken::Stream);
        streams
            .chain(self.call_turn.drain(..).map(Taken::Call))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_streams_come_first_and_neither_lane_starves() {
        let (mut inbox, streams, calls) = Inbox::new();
        for number in 0..20 {
            let ended = CallInput::Ended(CallKind::Stores, RequestId(number));
            calls.send(ended).await.expect("there is room");
        }
        for _ in 0..300 {
            streams.send(Vec::new()).await.expect("there is room");
        }
        let mut turns = Vec::new();
        for _ in 0..3 {
            inbox.filled().await;
            let taken = inbox.take();
            let is_stream = |taken: &Taken| matches!(taken, Taken::Stream(_));
            assert!(taken.is_sorted_by_key(|taken| !is_stream(taken)));
            let streams = taken.iter().filter(|taken| is_stream(taken)).count();
            turns.push((streams, taken.len() - streams));
        }
        assert_eq!(
            turns,
            [(STREAM_TURN, CALL_TURN), (STREAM_TURN, CALL_TURN), (44, 4)]
        );
    }
}
