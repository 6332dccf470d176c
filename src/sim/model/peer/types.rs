use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::Message;
use crate::region::{Peer, PeerId, Region, RegionEpoch, RegionId, StoreId, WaitTarget};
use crate::sim::fault::Timing;
use crate::sim::model::command::{Entry, MergeCommit, SplitPlan};
use crate::sim::model::history::History;
use crate::sim::model::{CallId, ModelRegionError};
use crate::time::Timestamp;

/// A replica of a region on a store.
#[derive(Clone, Debug)]
pub(in crate::sim) struct PeerNode {
    pub(in crate::sim) id: PeerId,
    pub(in crate::sim) store: StoreId,
    /// The region as far as this peer has applied.
    pub(in crate::sim) region: Arc<Region>,
    pub(in crate::sim) term: u64,
    /// For whom it voted in the present term.
    pub(in crate::sim) vote: Option<PeerId>,
    pub(in crate::sim) leader: Option<Peer>,
    pub(in crate::sim) role: Role,
    /// The index and term before the first entry of `log`.
    pub(in crate::sim) base: (u64, u64),
    pub(in crate::sim) log: Vec<Entry>,
    pub(in crate::sim) commit: u64,
    pub(in crate::sim) applied: u64,
    pub(in crate::sim) merge: Option<MergeState>,
    pub(in crate::sim) pending_conf: u64,
    pub(in crate::sim) committed_split: u64,
    pub(in crate::sim) committed_merge: u64,
    pub(in crate::sim) wait: Option<WaitTicket>,
    /// When a leader's word arrived last.
    pub(in crate::sim) last_heard: Timestamp,
    /// Until then nothing passes between this peer and the others.
    pub(in crate::sim) deaf_until: Timestamp,
    /// Until then a leader keeps what it proposes to itself.
    pub(in crate::sim) hold_until: Timestamp,
    pub(in crate::sim) armed: Armed,
    /// Elections tried in vain since a leader was known.
    pub(in crate::sim) tries: u32,
}

/// Which timers are running.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sim) struct Armed {
    pub(in crate::sim) tick: bool,
    pub(in crate::sim) election: bool,
    pub(in crate::sim) apply: bool,
    pub(in crate::sim) merge: bool,
}

#[derive(Clone, Debug)]
pub(in crate::sim) enum Role {
    Follower,
    Candidate {
        pre: bool,
        granted: BTreeSet<PeerId>,
    },
    Leader(Box<Leader>),
}

/// What only a leader has.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Leader {
    pub(in crate::sim) progress: BTreeMap<PeerId, Progress>,
    /// Until then it ticks: sends heartbeats and checks its quorum.
    pub(in crate::sim) awake_until: Timestamp,
    /// Ticks since the quorum was checked last.
    pub(in crate::sim) ticks: u32,
    /// Until then nobody else can be elected, and reads are served at once.
    pub(in crate::sim) lease_until: Timestamp,
    pub(in crate::sim) reads: Vec<PendingRead>,
    pub(in crate::sim) transfer: Option<(Peer, Timestamp)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sim) struct Progress {
    pub(in crate::sim) matched: u64,
    pub(in crate::sim) next: u64,
    /// The newest round that it confirmed.
    pub(in crate::sim) acked: Timestamp,
    /// Whether it was heard since the quorum was checked last.
    pub(in crate::sim) recent: bool,
    pub(in crate::sim) needs_snapshot: bool,
}

#[derive(Clone, Debug)]
pub(in crate::sim) struct PendingRead {
    pub(in crate::sim) call: CallId,
    /// The round that has to be confirmed.
    pub(in crate::sim) sent: Timestamp,
    /// What has to be applied, known once the round is confirmed.
    pub(in crate::sim) index: Option<u64>,
    pub(in crate::sim) version: u64,
}

/// A source region between the two steps of a merge.
#[derive(Clone, Debug)]
pub(in crate::sim) struct MergeState {
    pub(in crate::sim) target: RegionId,
    pub(in crate::sim) target_epoch: RegionEpoch,
    pub(in crate::sim) prepare_id: u64,
}

/// A wait that is not over.
#[derive(Clone, Debug)]
pub(in crate::sim) struct WaitTicket {
    pub(in crate::sim) call: CallId,
    pub(in crate::sim) entry: u64,
    pub(in crate::sim) target: WaitTarget,
    pub(in crate::sim) index: u64,
    pub(in crate::sim) term: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sim) enum PeerTimer {
    /// A leader's heartbeat.
    Tick,
    /// A peer looks whether there is a leader.
    Election,
    Apply,
    /// A merging region looks whether it can go on.
    Merge,
}

/// What a peer wants done.
#[derive(Debug)]
pub(in crate::sim) enum Out {
    Send(Peer, Message),
    Timer(Duration, PeerTimer),
    WaitDone(WaitTicket, Result<(), ModelRegionError>),
    ReadDone(CallId, Result<(), ModelRegionError>),
    /// PD is told of the region.
    Heartbeat,
    /// The other half of a split comes into being here.
    Split(Arc<SplitPlan>, Arc<Region>, bool),
    /// The source of a merge goes away here.
    Absorb(Arc<MergeCommit>),
    /// This peer goes away.
    Destroy,
}

/// What a peer sees of the world around it.
#[derive(Debug)]
pub(in crate::sim) struct Ctx<'a> {
    pub(in crate::sim) now: Timestamp,
    pub(in crate::sim) rng: &'a mut ChaCha8Rng,
    pub(in crate::sim) timing: &'a Timing,
    pub(in crate::sim) history: &'a mut History,
    /// Whether the leader this peer follows (or its own leadership) is sound as
    /// far as the network goes.
    pub(in crate::sim) leader_alive: bool,
    /// How long this store takes to apply now.
    pub(in crate::sim) apply_delay: Duration,
    pub(in crate::sim) out: &'a mut Vec<Out>,
}

impl Ctx<'_> {
    /// Draws an election timeout.
    pub(super) fn election_delay(&mut self) -> Duration {
        let base = self.timing.election_timeout.as_micros() as u64;
        Duration::from_micros(base + self.rng.random_range(0..=base))
    }

    pub(super) fn send(&mut self, to: Peer, message: Message) {
        self.out.push(Out::Send(to, message));
    }
}

impl PeerNode {
    /// Returns a peer that has applied everything up to `base`.
    pub(in crate::sim) fn new(
        peer: Peer,
        region: Arc<Region>,
        base: (u64, u64),
        now: Timestamp,
    ) -> Self {
        Self {
            id: peer.id,
            store: peer.store_id,
            region,
            term: base.1,
            vote: None,
            leader: None,
            role: Role::Follower,
            base,
            log: Vec::new(),
            commit: base.0,
            applied: base.0,
            merge: None,
            pending_conf: 0,
            committed_split: 0,
            committed_merge: 0,
            wait: None,
            last_heard: now,
            deaf_until: Timestamp::ZERO,
            hold_until: Timestamp::ZERO,
            armed: Armed::default(),
            tries: 0,
        }
    }

    pub(in crate::sim) fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    pub(in crate::sim) fn leader_state(&self) -> Option<&Leader> {
        match &self.role {
            Role::Leader(leader) => Some(leader),
            _ => None,
        }
    }

    pub(in crate::sim) fn last_index(&self) -> u64 {
        self.base.0 + self.log.len() as u64
    }

    /// Returns term and index of the last entry, in the order in which votes
    /// compare them.
    pub(in crate::sim) fn last(&self) -> (u64, u64) {
        let term = self.log.last().map_or(self.base.1, |entry| entry.term);
        (term, self.last_index())
    }

    pub(in crate::sim) fn entry(&self, index: u64) -> Option<&Entry> {
        let at = index.checked_sub(self.base.0 + 1)?;
        self.log.get(usize::try_from(at).ok()?)
    }

    /// Returns the term at `index`; `None` where the log does not reach.
    pub(super) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.base.0 {
            return Some(self.base.1);
        }
        self.entry(index).map(|entry| entry.term)
    }

    /// Returns this peer as its own region has it.
    pub(in crate::sim) fn own(&self) -> Option<Peer> {
        self.region.peers.iter().find(|p| p.id == self.id).copied()
    }

    pub(super) fn is_voter(&self) -> bool {
        self.own().is_some_and(|peer| peer.role.is_voter())
    }

    /// Starts a timer unless it runs.
    pub(in crate::sim) fn arm(&mut self, timer: PeerTimer, after: Duration, out: &mut Vec<Out>) {
        let armed = match timer {
            PeerTimer::Tick => &mut self.armed.tick,
            PeerTimer::Election => &mut self.armed.election,
            PeerTimer::Apply => &mut self.armed.apply,
            PeerTimer::Merge => &mut self.armed.merge,
        };
        if !std::mem::replace(armed, true) {
            out.push(Out::Timer(after, timer));
        }
    }
}
