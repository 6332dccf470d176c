use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::CallId;
use super::lease::Lease;
use super::peer::PeerNode;
use crate::region::{PeerId, RegionId, Store, StoreId};
use crate::time::Timestamp;

/// The API version of a store's storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StorageMode {
    /// Version 1.
    #[default]
    V1,
    /// Version 1 with TTL.
    V1Ttl,
    /// Version 2.
    V2,
}

/// How far a store process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Nothing listens.
    Down,
    /// The service answers, its raft part does not run.
    ServiceOnly,
    Up,
}

/// What goes wrong with a Finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FinishFault {
    /// It lies unread this long.
    Late(Duration),
    /// It is served, and its answer says that the lease had lapsed.
    SaysLapsed,
    /// It is served, and another message is answered in place.
    OtherMessage,
    /// It is served and the stream ends well, with no answer.
    NoAnswer,
    /// It is served, and neither an answer nor the end comes.
    Silence,
}

/// A store.
#[derive(Clone, Debug)]
pub(super) struct StoreNode {
    pub(super) info: Store,
    pub(super) peers: BTreeMap<RegionId, PeerNode>,
    /// Peers that were here and are gone.
    pub(super) tombstones: BTreeSet<PeerId>,
    /// For whom peers that are not here yet have voted, and in which term.
    pub(super) unborn: BTreeMap<PeerId, (u64, PeerId)>,
    pub(super) lease: Lease,
    pub(super) life: Life,
    pub(super) gone: bool,
    pub(super) down_since: Timestamp,
    /// The prepare stream that is served.
    pub(super) stream: Option<CallId>,
    pub(super) storage: StorageMode,
    pub(super) engine_v2: bool,
    /// Until then the raft thread does nothing.
    pub(super) stuck_until: Timestamp,
    /// Until then applying takes this many times as long.
    pub(super) slow_apply: (Timestamp, u32),
    /// Until then answers take this long in addition, in microseconds.
    pub(super) slow_answer: (Timestamp, u64),
    /// Until then messages from and to clients are late by up to this much in
    /// addition, in microseconds.
    pub(super) client_delay: (Timestamp, u64),
    /// The same between it and the other stores.
    pub(super) peer_delay: (Timestamp, u64),
    /// What happens to the Finish that a client sends next.
    pub(super) finish_fault: Option<FinishFault>,
    /// Since when answers take ever longer, up to that; if they do.
    pub(super) slower_since: Option<Timestamp>,
    /// Until then this many percent of the waits and reads are refused.
    pub(super) busy: (Timestamp, u32),
    pub(super) errors: (Timestamp, u32),
}

impl StoreNode {
    pub(super) fn new(info: Store, clock_offset: u64) -> Self {
        Self {
            info,
            peers: BTreeMap::new(),
            tombstones: BTreeSet::new(),
            unborn: BTreeMap::new(),
            lease: Lease::new(clock_offset),
            life: Life::Up,
            gone: false,
            down_since: Timestamp::ZERO,
            stream: None,
            storage: StorageMode::V1,
            engine_v2: false,
            stuck_until: Timestamp::ZERO,
            slow_apply: (Timestamp::ZERO, 1),
            slow_answer: (Timestamp::ZERO, 0),
            slower_since: None,
            client_delay: (Timestamp::ZERO, 0),
            peer_delay: (Timestamp::ZERO, 0),
            finish_fault: None,
            busy: (Timestamp::ZERO, 0),
            errors: (Timestamp::ZERO, 0),
        }
    }

    pub(super) fn id(&self) -> StoreId {
        self.info.id
    }

    pub(super) fn raft_runs(&self) -> bool {
        self.life == Life::Up
    }
}
