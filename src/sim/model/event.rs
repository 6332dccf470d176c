use std::collections::BTreeMap;
use std::sync::Arc;

use super::peer::{Message, PeerTimer};
use super::strike::Strike;
use super::{Answer, CallId, Request, StreamReply};
use crate::cluster::StreamRequest;
use crate::region::{Peer, PeerId, Region, RegionId, StoreId, WaitTarget};
use crate::time::Timestamp;

/// Something that happens by itself at its time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A request reaches PD.
    AtPd(CallId, Request),
    /// PD hears of a region.
    Report(PdReport),
    /// All leaders tell PD of themselves.
    Refresh,
    /// A call reaches its store.
    AtStore(CallId),
    /// Something reaches the server's end of a stream.
    StreamInput(CallId, StreamInput),
    /// The server takes the next request of a stream.
    StreamWork(CallId),
    /// A wait comes to a raft thread that was stuck.
    LateWait(CallId, u64, WaitTarget),
    /// An answer of a stream is ready at the store.
    Emit(CallId, StreamReply),
    /// The server notices that its stream was aborted.
    Aborted(CallId),
    /// An answer reaches the client.
    Deliver(CallId, Answer),
    Raft {
        to: PeerAddress,
        from: Peer,
        message: Message,
    },
    Timer(PeerAddress, PeerTimer),
    Strike(Strike),
}

/// Where a peer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PeerAddress {
    pub(super) store: StoreId,
    pub(super) region: RegionId,
    pub(super) peer: PeerId,
}

/// What a leader tells PD.
#[derive(Clone, Debug)]
pub(super) struct PdReport {
    pub(super) region: Arc<Region>,
    pub(super) leader: Peer,
    pub(super) term: u64,
}

/// What comes in on a stream.
#[derive(Clone, Debug)]
pub(super) enum StreamInput {
    Request(StreamRequest),
    Garbage,
    HalfClose,
    /// The client is gone.
    Dropped,
}

/// Events in the order of their time, those of one instant in the order in
/// which they were put in.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    events: BTreeMap<(Timestamp, u64), Event>,
    next: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Timestamp, event: Event) {
        self.events.insert((at, self.next), event);
        self.next += 1;
    }

    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes the first event that is due.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Event)> {
        let entry = self.events.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let ((at, _), event) = entry.remove_entry();
        Some((at, event))
    }
}
