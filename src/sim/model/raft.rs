use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::command::{Command, MergeCommit};
use super::event::{Event, PdReport, PeerAddress};
use super::history::CommandRecord;
use super::peer::{Ctx, Message, Out, PeerNode, PeerTimer, quorum};
use super::stream::wait_reply;
use super::{Cluster, ModelRegionError, RegionErrorDetail};
use crate::region::{Peer, PeerId, Region, RegionEpoch, RegionId, StoreId};
use crate::time::Timestamp;

impl Cluster {
    /// Runs `act` on a peer and carries out what it wants done. With `judge` the
    /// peer is told whether its leader is alive.
    pub(super) fn with_peer<T>(
        &mut self,
        store: StoreId,
        region: RegionId,
        judge: bool,
        act: impl FnOnce(&mut PeerNode, &mut Ctx<'_>) -> T,
    ) -> Option<T> {
        let leader_alive = judge && self.leader_alive(store, region);
        let apply_delay = self.apply_delay(store);
        let node = self.stores.get_mut(&store)?;
        let peer = node.peers.get_mut(&region)?;
        let address = PeerAddress {
            store,
            region,
            peer: peer.id,
        };
        let before = peer.form();
        let mut out = std::mem::take(&mut self.out);
        let mut ctx = Ctx {
            now: self.now,
            rng: &mut self.rng,
            timing: &self.plan.timing,
            history: &mut self.history,
            leader_alive,
            apply_delay,
            out: &mut out,
        };
        let result = act(peer, &mut ctx);
        let form = peer.form();
        if form != before {
            self.history.formed((region, store), before, form, self.now);
        }
        for out in out.drain(..) {
            self.carry_out(address, out);
        }
        // Keeps the allocation, unless a peer was run from within.
        if self.out.capacity() == 0 {
            self.out = out;
        }
        Some(result)
    }

    fn apply_delay(&mut self, store: StoreId) -> Duration {
        let delay = self.jittered(self.plan.timing.apply_delay);
        match self.stores.get(&store) {
            Some(node) if self.now < node.slow_apply.0 => delay * node.slow_apply.1,
            _ => delay,
        }
    }

    fn carry_out(&mut self, from: PeerAddress, out: Out) {
        match out {
            Out::Send(to, message) => self.send(from, to, message),
            Out::Timer(after, timer) => self.after(after, Event::Timer(from, timer)),
            Out::WaitDone(ticket, result) => {
                let cost = self.plan.timing.answer_cost;
                let reply = wait_reply(ticket.entry, ticket.target, result);
                self.after(cost, Event::Emit(ticket.call, reply));
            }
            Out::ReadDone(call, result) => self.read_done(call, result),
            Out::Heartbeat => self.tell_pd(from),
            Out::Split(plan, region, lead) => {
                let peer = plan.new_peers.iter().find(|p| p.store_id == from.store);
                if let Some(peer) = peer {
                    self.create_split_peer(*peer, region, lead);
                }
            }
            Out::Absorb(commit) => self.absorb(from.store, &commit),
            Out::Destroy => self.destroy(from),
        }
    }

    fn peer(&self, store: StoreId, region: RegionId) -> Option<&PeerNode> {
        self.stores.get(&store)?.peers.get(&region)
    }

    fn peer_at(&self, address: PeerAddress) -> Option<&PeerNode> {
        self.peer(address.store, address.region)
            .filter(|peer| peer.id == address.peer)
    }

    /// Returns whether messages pass between two peers now.
    fn passes(&self, region: RegionId, a: StoreId, b: StoreId) -> bool {
        let hears = |store: StoreId| {
            self.stores.get(&store).is_some_and(|node| {
                let deaf = |peer: &PeerNode| self.now < peer.deaf_until;
                node.raft_runs() && !node.peers.get(&region).is_some_and(deaf)
            })
        };
        self.net.connected(a, b) && hears(a) && hears(b)
    }

    /// Returns whether a peer can reach a quorum of its region.
    pub(super) fn quorum_near(&self, peer: &PeerNode) -> bool {
        let region = &peer.region;
        quorum(&region.peers, |id| {
            id == peer.id
                || region.peers.iter().any(|other| {
                    other.id == id
                        && self.passes(region.id, peer.store, other.store_id)
                        && self.can_answer(other, region)
                        && self
                            .stores
                            .get(&other.store_id)
                            .is_some_and(|node| node.stuck_until <= self.now)
                })
        })
    }

    /// Returns whether the leader a peer follows leads, hears this peer and has
    /// a quorum near.
    pub(super) fn leader_alive(&self, store: StoreId, region: RegionId) -> bool {
        let Some(peer) = self.peer(store, region) else {
            return false;
        };
        if peer.is_leader() {
            return self.quorum_near(peer);
        }
        let Some(leader) = peer.leader else {
            return false;
        };
        let not_stuck = self
            .stores
            .get(&leader.store_id)
            .is_some_and(|node| node.stuck_until <= self.now);
        not_stuck
            && self.passes(region, store, leader.store_id)
            && self.peer(leader.store_id, region).is_some_and(|there| {
                there.id == leader.id
                    && there.is_leader()
                    && there.term == peer.term
                    && self.quorum_near(there)
            })
    }

    fn send(&mut self, from: PeerAddress, to: Peer, message: Message) {
        let sender = Peer {
            id: from.peer,
            store_id: from.store,
            role: self
                .peer_at(from)
                .and_then(PeerNode::own)
                .map_or_else(Default::default, |own| own.role),
        };
        self.send_as(sender, from.region, to, message);
    }

    pub(super) fn send_as(&mut self, from: Peer, region: RegionId, to: Peer, message: Message) {
        if !self.passes(region, from.store_id, to.store_id) {
            return;
        }
        let delay = self.jittered(self.plan.timing.peer_delay);
        let delay = delay + self.late_between(from.store_id, to.store_id);
        let to = PeerAddress {
            store: to.store_id,
            region,
            peer: to.id,
        };
        self.after(delay, Event::Raft { to, from, message });
    }

    /// A message reaches a store.
    pub(super) fn raft_message(&mut self, to: PeerAddress, from: Peer, message: Message) {
        if !self.passes(to.region, from.store_id, to.store) {
            return;
        }
        let Some(node) = self.stores.get(&to.store) else {
            return;
        };
        if self.now < node.stuck_until {
            // After the clients' questions of the same instant.
            let at = node.stuck_until + Duration::from_micros(1);
            self.queue.push(at, Event::Raft { to, from, message });
            return;
        }
        match node.peers.get(&to.region) {
            Some(peer) if peer.id == to.peer => {
                let judge = matches!(message, Message::PreVote { .. } | Message::Vote { .. });
                self.with_peer(to.store, to.region, judge, |peer, ctx| {
                    peer.step(from, message, ctx);
                });
            }
            Some(older) if older.id > to.peer => {}
            Some(older) => {
                let older = PeerAddress {
                    peer: older.id,
                    ..to
                };
                self.destroy(older);
                self.message_for_nobody(to, from, message);
            }
            None => self.message_for_nobody(to, from, message),
        }
    }

    /// A message for a peer that does not exist (yet).
    fn message_for_nobody(&mut self, to: PeerAddress, from: Peer, message: Message) {
        let Some(node) = self.stores.get_mut(&to.store) else {
            return;
        };
        if node.tombstones.contains(&to.peer) {
            return;
        }
        let own = |region: &Region| region.peers.iter().find(|p| p.id == to.peer).copied();
        match message {
            Message::Append { .. } => {
                let myself = Peer {
                    id: to.peer,
                    store_id: to.store,
                    ..Peer::default()
                };
                self.send_as(myself, to.region, from, Message::NeedSnapshot);
            }
            Message::Snapshot {
                term,
                region,
                merge,
                index,
                log_term,
                sent,
            } => {
                let overlaps = |peer: &PeerNode| peer.region.range.overlaps(&region.range);
                let Some(own) = own(&region) else { return };
                let voted = node.unborn.get(&to.peer).copied();
                let outdated = voted.is_some_and(|(voted, _)| voted > term);
                if outdated || node.peers.values().any(overlaps) {
                    return;
                }
                let at = (term, index, log_term);
                let merging = merge.is_some();
                let mut peer = PeerNode::from_snapshot(own, from, at, region, merge, self.now);
                peer.vote = voted.filter(|vote| vote.0 == term).map(|vote| vote.1);
                node.peers.insert(to.region, peer);
                if merging {
                    let delay = self.plan.timing.merge_check;
                    self.arm(to.store, to.region, PeerTimer::Merge, delay);
                }
                let reply = Message::AppendReply {
                    term,
                    ok: true,
                    index,
                    sent,
                };
                self.send_as(own, to.region, from, reply);
            }
            other => self.unborn_votes(to, from, &other),
        }
    }

    /// A peer's timer goes off.
    pub(super) fn peer_timer(&mut self, address: PeerAddress, timer: PeerTimer) {
        let Some(node) = self.stores.get_mut(&address.store) else {
            return;
        };
        let (stuck, runs) = (node.stuck_until, node.raft_runs());
        let Some(peer) = node.peers.get_mut(&address.region) else {
            return;
        };
        if peer.id != address.peer {
            return;
        }
        if self.now < stuck && timer != PeerTimer::Apply {
            let at = stuck + Duration::from_micros(2);
            self.queue.push(at, Event::Timer(address, timer));
            return;
        }
        let armed = match timer {
            PeerTimer::Tick => &mut peer.armed.tick,
            PeerTimer::Election => &mut peer.armed.election,
            PeerTimer::Apply => &mut peer.armed.apply,
            PeerTimer::Merge => &mut peer.armed.merge,
        };
        if !std::mem::take(armed) || !runs {
            return;
        }
        let (store, region) = (address.store, address.region);
        match timer {
            PeerTimer::Tick => {
                self.with_peer(store, region, false, |peer, ctx| peer.on_tick(ctx));
            }
            PeerTimer::Election => {
                let near = self.peer_at(address).is_some_and(|p| self.quorum_near(p));
                self.with_peer(store, region, true, |peer, ctx| {
                    peer.on_election_timer(near, ctx);
                });
            }
            PeerTimer::Apply => {
                self.with_peer(store, region, false, |peer, ctx| peer.on_apply(ctx));
            }
            PeerTimer::Merge => self.check_merge(address),
        }
    }

    fn tell_pd(&mut self, from: PeerAddress) {
        let Some(peer) = self.peer_at(from) else {
            return;
        };
        let Some(leader) = peer.own() else { return };
        let report = PdReport {
            region: Arc::clone(&peer.region),
            leader,
            term: peer.term,
        };
        let most = self.plan.timing.pd_lag.as_micros() as u64;
        let extra = if self.now < self.pd.lag.0 {
            self.pd.lag.1
        } else {
            0
        };
        let delay = self.rng.random_range(0..=most) + self.rng.random_range(0..=extra);
        self.after(Duration::from_micros(delay), Event::Report(report));
    }

    fn create_split_peer(&mut self, peer: Peer, region: Arc<Region>, lead: bool) {
        let id = region.id;
        let now = self.now;
        let Some(node) = self.stores.get_mut(&peer.store_id) else {
            return;
        };
        if node.peers.contains_key(&id) || node.tombstones.contains(&peer.id) {
            return;
        }
        let mut new = PeerNode::new(peer, region, (5, 5), now);
        // It may ask for votes at once.
        new.last_heard = Timestamp::ZERO;
        node.peers.insert(id, new);
        if lead {
            self.with_peer(peer.store_id, id, true, |peer, ctx| {
                peer.campaign_now(false, ctx);
            });
        } else {
            self.start_election_timer(peer.store_id, id, 1);
        }
    }

    /// Starts a peer's election timer: `slowness` election timeouts.
    pub(super) fn start_election_timer(&mut self, store: StoreId, region: RegionId, slowness: u32) {
        let base = self.plan.timing.election_timeout.as_micros() as u64;
        let delay = base * u64::from(slowness) + self.rng.random_range(0..=base);
        self.arm(
            store,
            region,
            PeerTimer::Election,
            Duration::from_micros(delay),
        );
    }

    pub(super) fn arm(
        &mut self,
        store: StoreId,
        region: RegionId,
        timer: PeerTimer,
        delay: Duration,
    ) {
        self.with_peer(store, region, false, |peer, ctx| {
            peer.arm(timer, delay, ctx.out);
        });
    }

    /// The source of a merge goes away on a store whose target has applied the
    /// merge. What it waited for is answered as success.
    fn absorb(&mut self, store: StoreId, commit: &MergeCommit) {
        let Some(source) = self.peer(store, commit.source.id) else {
            return;
        };
        let address = PeerAddress {
            store,
            region: commit.source.id,
            peer: source.id,
        };
        self.destroy(address);
    }

    /// A peer goes away from its store.
    pub(super) fn destroy(&mut self, address: PeerAddress) {
        let Some(node) = self.stores.get_mut(&address.store) else {
            return;
        };
        let is_it = node
            .peers
            .get(&address.region)
            .is_some_and(|peer| peer.id == address.peer);
        if !is_it {
            return;
        }
        node.tombstones.insert(address.peer);
        let Some(mut peer) = node.peers.remove(&address.region) else {
            return;
        };
        let mut out = Vec::new();
        peer.end_wait(&mut out);
        let reads = match peer.leader_state() {
            Some(leader) => leader.reads.iter().map(|read| read.call).collect(),
            None => Vec::new(),
        };
        for out in out {
            self.carry_out(address, out);
        }
        let region_id = address.region;
        for call in reads {
            let message = format!("region {region_id} is missing");
            let detail = RegionErrorDetail::RegionNotFound { region_id };
            self.read_done(call, Err(ModelRegionError::new(detail, message)));
        }
        // Its peers may have lost their leader.
        for peer in &peer.region.peers {
            if peer.store_id != address.store {
                self.start_election_timer(peer.store_id, region_id, 1);
            }
        }
    }

    /// A region between the two steps of a merge looks whether the second can
    /// be taken on this store.
    fn check_merge(&mut self, address: PeerAddress) {
        let Some(source) = self.peer_at(address) else {
            return;
        };
        let Some(merge) = source.merge.clone() else {
            return;
        };
        let source_region = Arc::clone(&source.region);
        let source_leads = source.is_leader();
        let rolling_back = source.has_unapplied(|c| matches!(c, Command::RollbackMerge));
        let again = self.jittered(self.plan.timing.merge_check);
        self.arm(address.store, address.region, PeerTimer::Merge, again);
        if self.triggers.merges_held_until > self.now {
            return;
        }
        let target = self.peer(address.store, merge.target);
        let epoch = target.map(|target| target.region.epoch);
        if epoch == Some(merge.target_epoch) {
            let ready = target.is_some_and(|target| {
                let under_way = |c: &Command| matches!(c, Command::CommitMerge(_));
                target.is_leader() && !target.has_unapplied(under_way)
            });
            if ready {
                let commit = Command::CommitMerge(Arc::new(MergeCommit {
                    source: source_region,
                    prepare_id: merge.prepare_id,
                    target_epoch: merge.target_epoch,
                }));
                self.propose(address.store, merge.target, commit);
            }
            return;
        }
        let merged = self
            .history
            .merges
            .get(&merge.prepare_id)
            .is_some_and(|record| record.merged);
        let expected = merge.target_epoch;
        let newer = |epoch: RegionEpoch| {
            epoch.version > expected.version || epoch.conf_ver > expected.conf_ver
        };
        let lost = match epoch {
            Some(epoch) => newer(epoch),
            // The target itself was merged away.
            None if merged => return self.destroy(address),
            // It has left this store.
            None => self
                .replicas(merge.target)
                .all(|target| newer(target.region.epoch)),
        };
        if lost && source_leads && !rolling_back {
            self.propose(address.store, address.region, Command::RollbackMerge);
        }
    }

    /// Proposes a command at the peer that leads `region` on `store`. Returns
    /// whether it went into the log: the lease refuses some kinds, and a region
    /// that is being merged takes hardly anything.
    pub(super) fn propose(&mut self, store: StoreId, region: RegionId, command: Command) -> bool {
        let now = self.now;
        let Some(node) = self.stores.get(&store) else {
            return false;
        };
        let refused_kind = command.is_refused_kind();
        if !node.raft_runs() || (refused_kind && node.lease.is_suspended(now)) {
            return false;
        }
        let Some(peer) = node.peers.get(&region) else {
            return false;
        };
        let merging =
            peer.merge.is_some() || peer.has_unapplied(|c| matches!(c, Command::PrepareMerge(_)));
        let changing = matches!(command, Command::ConfChange(_) | Command::PrepareMerge(_))
            && peer.pending_conf > peer.applied;
        let allowed =
            !merging || matches!(command, Command::RollbackMerge | Command::CommitMerge(_));
        if !peer.is_leader() || !allowed || changing {
            return false;
        }
        let mut id = 0;
        if refused_kind {
            id = self.next_command;
            self.next_command += 1;
            self.history.proposed(
                id,
                CommandRecord {
                    name: command.name(),
                    region,
                    store,
                    proposed: now,
                    committed: None,
                    applied_by_leader: None,
                },
            );
        }
        self.with_peer(store, region, false, |peer, ctx| {
            peer.propose(id, command, ctx);
        });
        true
    }

    /// Returns the peers that lead, as they believe themselves, in order.
    pub(super) fn leaders(&self) -> Vec<PeerAddress> {
        let of = |(&store, node): (&StoreId, &super::node::StoreNode)| {
            let leads = node.raft_runs();
            node.peers
                .values()
                .filter(move |peer| leads && peer.is_leader())
                .map(|peer| PeerAddress {
                    store,
                    region: peer.region.id,
                    peer: peer.id,
                })
                .collect::<Vec<_>>()
        };
        self.stores.iter().flat_map(of).collect()
    }

    /// Returns the peer of the newest term that leads a region.
    pub(super) fn leader_of(&self, region: RegionId) -> Option<&PeerNode> {
        self.replicas(region)
            .filter(|peer| peer.is_leader())
            .max_by_key(|peer| peer.term)
    }

    /// After a change of the network round some stores: followers that have
    /// lost their leader notice after a while; with `healed`, leaders that slept
    /// hear from their peers again soon.
    pub(super) fn network_changed(&mut self, stores: &[StoreId], healed: bool) {
        let mut touched: Vec<RegionId> = stores
            .iter()
            .filter_map(|store| self.stores.get(store))
            .flat_map(|node| node.peers.keys().copied())
            .collect();
        touched.sort_unstable();
        touched.dedup();
        for region in touched {
            self.region_disturbed(region, healed);
        }
    }

    pub(super) fn region_disturbed(&mut self, region: RegionId, healed: bool) {
        let awake = self
            .leader_of(region)
            .is_some_and(|leader| leader.armed.tick);
        let peers: Vec<(StoreId, PeerId, bool)> = self
            .replicas(region)
            .map(|peer| (peer.store, peer.id, peer.is_leader()))
            .collect();
        for (store, _, leads) in peers {
            if leads {
                if healed {
                    let delay = Duration::from_micros(self.rng.random_range(5_000..240_000));
                    self.arm(store, region, PeerTimer::Tick, delay);
                    self.wake_leader(store, region);
                }
            } else if awake || healed {
                self.start_election_timer(store, region, 1);
            } else {
                let notice = self.plan.timing.idle_notice.as_micros() as u64;
                let delay = notice + self.rng.random_range(0..=notice * 3);
                let delay = Duration::from_micros(delay);
                self.arm(store, region, PeerTimer::Election, delay);
            }
        }
    }

    fn wake_leader(&mut self, store: StoreId, region: RegionId) {
        self.with_peer(store, region, false, |peer, ctx| peer.wake(ctx));
    }
}
