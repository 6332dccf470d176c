use std::collections::VecDeque;
use std::time::Duration;

use crate::error::FailureKind;
use crate::machine::RequestId;
use crate::region::RegionErrorKind;

/// How long a lease of five seconds is in force for certain: stores count in
/// whole seconds.
pub(super) const LEASE: Duration = Duration::from_secs(4);

/// A store as far as leases and prepare streams go.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Node {
    pub(super) lease: Option<Lease>,
    /// Waits that are not over, also those of streams that are gone.
    pub(super) waits: Vec<Wait>,
    pub(super) streams: Vec<Stream>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lease {
    pub(super) left: Duration,
    /// Whether we took it or renewed it last.
    pub(super) is_ours: bool,
}

/// A wait for a peer that has not applied everything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wait {
    pub(super) target: Target,
    pub(super) index: u8,
    /// `None` when the stream is gone.
    pub(super) stream: Option<RequestId>,
}

/// A region as it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Target {
    pub(super) region: u8,
    pub(super) version: u8,
}

/// A prepare stream of ours.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stream {
    pub(super) number: RequestId,
    pub(super) state: StreamState,
    /// Sent and not served yet.
    pub(super) up: VecDeque<Up>,
    /// Answered and not arrived yet.
    pub(super) down: VecDeque<Down>,
    /// Whether a lease was asked for on it, and whether its first was answered.
    pub(super) is_leased: bool,
    pub(super) is_acknowledged: bool,
    pub(super) is_finished: bool,
    /// Whether its end has arrived.
    pub(super) has_ended: bool,
    /// Whether the machine has closed it: what still arrives is late.
    pub(super) is_closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum StreamState {
    Opening,
    Open,
    /// The store serves it no more.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Up {
    Lease(RequestId),
    Wait(Target),
    Finish(RequestId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Down {
    Lease {
        request: RequestId,
        is_valid: bool,
        /// Whether the store had been suspended without a break since the first
        /// wait of the attempt.
        is_sound: bool,
    },
    Wait(Target, Result<(), RegionErrorKind>),
    Finished {
        request: RequestId,
        is_valid: bool,
    },
    End(FailureKind),
}

impl Stream {
    pub(super) fn new(number: RequestId) -> Self {
        Self {
            number,
            state: StreamState::Opening,
            up: VecDeque::new(),
            down: VecDeque::new(),
            is_leased: false,
            is_acknowledged: false,
            is_finished: false,
            has_ended: false,
            is_closed: false,
        }
    }
}

impl Node {
    /// Returns the stream that the machine has not closed.
    pub(super) fn present(&mut self) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| !stream.is_closed)
    }

    pub(super) fn stream(&mut self, number: RequestId) -> Option<&mut Stream> {
        self.streams
            .iter_mut()
            .find(|stream| stream.number == number)
    }

    /// The store ends all its streams; what is on the way back is lost.
    pub(super) fn end_streams(&mut self, kind: FailureKind) {
        for stream in &mut self.streams {
            if stream.state == StreamState::Open {
                stream.state = StreamState::Ended;
                stream.up.clear();
                stream.down.clear();
                stream.down.push_back(Down::End(kind));
            }
        }
        self.orphan_waits();
    }

    /// Waits of streams that are served no more go on, and answer nobody.
    pub(super) fn orphan_waits(&mut self) {
        let streams = &self.streams;
        for wait in &mut self.waits {
            let is_served = streams.iter().any(|stream| {
                Some(stream.number) == wait.stream && stream.state == StreamState::Open
            });
            if !is_served {
                wait.stream = None;
            }
        }
    }

    /// Ends the waits for a region that pass `test`.
    pub(super) fn end_waits(
        &mut self,
        region: u8,
        result: Result<(), RegionErrorKind>,
        test: impl Fn(&Wait) -> bool,
    ) {
        let (over, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waits)
            .into_iter()
            .partition(|wait| wait.target.region == region && test(wait));
        self.waits = rest;
        for wait in over {
            if let Some(stream) = wait.stream.and_then(|number| self.stream(number)) {
                stream.down.push_back(Down::Wait(wait.target, result));
            }
        }
    }
}
