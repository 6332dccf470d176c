use std::sync::Arc;
use std::time::Duration;

use super::quorum::reached;
use super::types::{PeerTimer, Progress, Role};
use super::{Ctx, MergeState, Message, PeerNode, quorum};
use crate::region::{Peer, Region};
use crate::sim::model::command::{Command, Entry};
use crate::time::Timestamp;

impl PeerNode {
    /// Appends a command to a leader's log and sends it on.
    pub(in crate::sim) fn propose(&mut self, id: u64, command: Command, ctx: &mut Ctx<'_>) {
        let term = self.term;
        self.log.push(Entry { term, id, command });
        let last = self.last_index();
        if matches!(
            self.entry(last).map(|entry| &entry.command),
            Some(Command::ConfChange(_))
        ) {
            self.pending_conf = last;
        }
        self.wake(ctx);
        self.broadcast(ctx);
        self.maybe_commit(ctx);
    }

    /// Keeps a leader awake for a little over two election timeouts.
    pub(in crate::sim) fn wake(&mut self, ctx: &mut Ctx<'_>) {
        if let Role::Leader(leader) = &mut self.role {
            let timeout = ctx.timing.election_timeout;
            leader.awake_until = leader.awake_until.max(ctx.now + timeout * 22 / 10);
            if !self.armed.tick {
                leader.ticks = 0;
            }
            self.arm(PeerTimer::Tick, timeout / 2, ctx.out);
        }
    }

    /// A leader's timer: heartbeats, and once per election timeout a look
    /// whether a quorum was heard.
    pub(in crate::sim) fn on_tick(&mut self, ctx: &mut Ctx<'_>) {
        let id = self.id;
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        leader.ticks += 1;
        if let Some((_, since)) = leader.transfer
            && ctx.now > since + ctx.timing.election_timeout
        {
            leader.transfer = None;
        }
        if leader.ticks >= 2 {
            leader.ticks = 0;
            let heard = |peer| peer == id || leader.progress.get(&peer).is_some_and(|p| p.recent);
            if !quorum(&self.region.peers, heard) {
                let term = self.term;
                self.become_follower(term, None, ctx);
                return;
            }
            leader.progress.values_mut().for_each(|p| p.recent = false);
        }
        if self.falls_asleep(ctx.now, ctx.timing.election_timeout) {
            if let Role::Leader(leader) = &mut self.role {
                leader.progress.values_mut().for_each(|p| p.recent = true);
            }
            return;
        }
        self.arm(PeerTimer::Tick, ctx.timing.election_timeout / 2, ctx.out);
        self.resend_lost(ctx);
        self.broadcast(ctx);
    }

    fn falls_asleep(&self, now: Timestamp, timeout: Duration) -> bool {
        let Role::Leader(leader) = &self.role else {
            return true;
        };
        let last = self.last_index();
        let at_rest = self.applied == last && leader.reads.is_empty() && leader.transfer.is_none();
        let others = |p: &Progress| p.matched == last;
        let all = leader
            .progress
            .iter()
            .all(|(&peer, p)| peer == self.id || others(p));
        at_rest && now >= leader.awake_until && (all || now >= leader.awake_until + timeout * 3)
    }

    /// Goes back for what was sent and not confirmed.
    fn resend_lost(&mut self, ctx: &Ctx<'_>) {
        let last = self.last_index();
        if let Role::Leader(leader) = &mut self.role {
            let old = ctx.now.saturating_sub(ctx.timing.election_timeout / 2);
            for progress in leader.progress.values_mut() {
                if progress.matched < last && progress.acked < old {
                    progress.next = progress.matched + 1;
                }
            }
        }
    }

    pub(in crate::sim) fn broadcast(&mut self, ctx: &mut Ctx<'_>) {
        let region = Arc::clone(&self.region);
        for peer in &region.peers {
            if peer.id != self.id {
                self.send_append(*peer, ctx);
            }
        }
    }

    /// Sends a peer what it lacks, or a heartbeat.
    pub(super) fn send_append(&mut self, to: Peer, ctx: &mut Ctx<'_>) {
        let (last, held) = (self.last_index(), ctx.now < self.hold_until);
        let (base, sent, term) = (self.base.0, ctx.now, self.term);
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let progress = leader.progress.entry(to.id).or_insert(Progress {
            next: last + 1,
            ..Progress::default()
        });
        if std::mem::take(&mut progress.needs_snapshot) && !held {
            progress.next = self.applied + 1;
            let message = Message::Snapshot {
                term,
                region: Arc::clone(&self.region),
                merge: self.merge.clone(),
                index: self.applied,
                log_term: self.term_at(self.applied).unwrap_or(0),
                sent,
            };
            ctx.send(to, message);
            return;
        }
        let next = if held {
            progress.matched + 1
        } else {
            std::mem::replace(&mut progress.next, last + 1)
        };
        let prev_index = next.saturating_sub(1).clamp(base, last);
        let from = (prev_index - base) as usize;
        let entries = match self.log.get(from..) {
            Some(entries) if !held => entries.to_vec(),
            _ => Vec::new(),
        };
        let message = Message::Append {
            term,
            prev_index,
            prev_term: self.term_at(prev_index).unwrap_or(0),
            entries,
            commit: self.commit,
            sent,
        };
        ctx.send(to, message);
    }

    /// Takes in a message from another peer.
    pub(in crate::sim) fn step(&mut self, from: Peer, message: Message, ctx: &mut Ctx<'_>) {
        let known = self.region.peers.iter().any(|peer| peer.id == from.id);
        match message {
            Message::PreVote { .. } | Message::Vote { .. } if !known => {
                let conf_ver = self.region.epoch.conf_ver;
                ctx.send(from, Message::Gone { conf_ver });
            }
            Message::PreVote { term, last } => self.on_pre_vote(from, term, last, ctx),
            Message::PreVoteReply {
                term,
                granted,
                own_term,
            } => self.on_pre_vote_reply(from.id, (term, granted, own_term), ctx),
            Message::Vote { term, last, force } => self.on_vote(from, (term, last, force), ctx),
            Message::VoteReply { term, granted } => {
                self.on_vote_reply(from.id, term, granted, ctx);
            }
            Message::Append { .. } => self.on_append(from, message, ctx),
            Message::AppendReply {
                term,
                ok,
                index,
                sent,
            } => self.on_append_reply(from, (term, ok, index, sent), ctx),
            // The peer exists: it needs nothing but the log.
            Message::Snapshot { term, sent, .. } => self.reply_append(from, term, sent, ctx),
            Message::NeedSnapshot => self.on_need_snapshot(from, ctx),
            Message::TimeoutNow { term } => {
                if term == self.term {
                    self.campaign_now(true, ctx);
                }
            }
            Message::Gone { conf_ver } => {
                if conf_ver > self.region.epoch.conf_ver {
                    ctx.out.push(super::Out::Destroy);
                }
            }
        }
    }

    fn reply_append(&mut self, from: Peer, term: u64, sent: Timestamp, ctx: &mut Ctx<'_>) {
        let index = self.commit;
        let ok = term >= self.term;
        let term = self.term;
        ctx.send(
            from,
            Message::AppendReply {
                term,
                ok,
                index,
                sent,
            },
        );
    }

    fn on_append(&mut self, from: Peer, message: Message, ctx: &mut Ctx<'_>) {
        let Message::Append {
            term,
            prev_index,
            prev_term,
            entries,
            commit,
            sent,
        } = message
        else {
            return;
        };
        if term < self.term {
            if !self.region.peers.iter().any(|peer| peer.id == from.id) {
                let conf_ver = self.region.epoch.conf_ver;
                ctx.send(from, Message::Gone { conf_ver });
            }
            let (term, index) = (self.term, self.last_index());
            ctx.send(
                from,
                Message::AppendReply {
                    term,
                    ok: false,
                    index,
                    sent,
                },
            );
            return;
        }
        if term > self.term || !matches!(self.role, Role::Follower) || self.leader != Some(from) {
            self.become_follower(term, Some(from), ctx);
        }
        self.last_heard = ctx.now;
        self.tries = 0;
        let fits = self.term_at(prev_index) == Some(prev_term);
        let index = if fits {
            let matched = self.append(prev_index, entries);
            let commit = commit.min(matched);
            self.advance_commit(commit, ctx);
            matched
        } else {
            // What is committed matches for sure.
            let hint = self.last_index().min(prev_index.saturating_sub(1));
            hint.max(self.commit)
        };
        ctx.send(
            from,
            Message::AppendReply {
                term,
                ok: fits,
                index,
                sent,
            },
        );
    }

    /// Puts entries behind `prev_index` and returns the last index that is
    /// known to match. What is there already stays.
    fn append(&mut self, prev_index: u64, entries: Vec<Entry>) -> u64 {
        let mut index = prev_index;
        for entry in entries {
            index += 1;
            match self.term_at(index) {
                Some(term) if term == entry.term => continue,
                Some(_) if index > self.commit => {
                    self.log.truncate((index - 1 - self.base.0) as usize);
                    self.log.push(entry);
                }
                Some(_) => {}
                None => self.log.push(entry),
            }
        }
        index
    }

    fn on_append_reply(
        &mut self,
        from: Peer,
        (term, ok, index, sent): (u64, bool, u64, Timestamp),
        ctx: &mut Ctx<'_>,
    ) {
        if term > self.term {
            self.become_follower(term, None, ctx);
            return;
        }
        let (own_term, last) = (self.term, self.last_index());
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let Some(progress) = leader.progress.get_mut(&from.id) else {
            return;
        };
        if term != own_term {
            return;
        }
        progress.recent = true;
        progress.acked = progress.acked.max(sent);
        if ok {
            progress.matched = progress.matched.max(index);
            progress.next = progress.next.max(progress.matched + 1);
        } else {
            progress.next = (index + 1).clamp(progress.matched + 1, last + 1);
        }
        let caught_up = progress.matched == last;
        if let Some((to, _)) = leader.transfer
            && to.id == from.id
            && caught_up
        {
            leader.transfer = None;
            ctx.send(to, Message::TimeoutNow { term });
        }
        if !ok {
            self.send_append(from, ctx);
        }
        self.maybe_commit(ctx);
        self.confirm_reads(ctx);
    }

    fn on_need_snapshot(&mut self, from: Peer, ctx: &mut Ctx<'_>) {
        if let Role::Leader(leader) = &mut self.role
            && let Some(progress) = leader.progress.get_mut(&from.id)
        {
            progress.needs_snapshot = true;
            progress.recent = true;
            self.send_append(from, ctx);
        }
    }

    /// Moves a leader's commit index to what a quorum has, if that is of its
    /// own term.
    pub(super) fn maybe_commit(&mut self, ctx: &mut Ctx<'_>) {
        let (id, last) = (self.id, self.last_index());
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let matched = |peer| {
            if peer == id {
                last
            } else {
                leader.progress.get(&peer).map_or(0, |p| p.matched)
            }
        };
        let Some(index) = reached(&self.region.peers, matched) else {
            return;
        };
        if index > self.commit && self.term_at(index) == Some(self.term) {
            self.advance_commit(index, ctx);
            self.broadcast(ctx);
        }
    }

    fn advance_commit(&mut self, to: u64, ctx: &mut Ctx<'_>) {
        for index in self.commit + 1..=to {
            let Some(entry) = self.entry(index) else {
                break;
            };
            match &entry.command {
                Command::Split(_) => self.committed_split = index,
                Command::PrepareMerge(_) => self.committed_merge = index,
                _ => {}
            }
            if let Some(entry) = self.entry(index)
                && entry.id != 0
            {
                ctx.history.committed(entry.id, ctx.now);
            }
        }
        self.commit = self.commit.max(to.min(self.last_index()));
        if self.applied < self.commit {
            let delay = ctx.apply_delay;
            self.arm(PeerTimer::Apply, delay, ctx.out);
        }
    }

    /// Builds the peer that a snapshot describes.
    pub(in crate::sim) fn from_snapshot(
        own: Peer,
        from: Peer,
        (term, index, log_term): (u64, u64, u64),
        region: Arc<Region>,
        merge: Option<MergeState>,
        now: Timestamp,
    ) -> Self {
        let mut peer = Self::new(own, region, (index, log_term), now);
        peer.term = term;
        peer.leader = Some(from);
        peer.merge = merge;
        peer
    }
}
