use std::collections::{BTreeMap, BTreeSet};

use super::types::{Leader, PeerTimer, Progress, Role};
use super::{Ctx, Message, Out, PeerNode, quorum};
use crate::region::{Peer, PeerId};
use crate::sim::model::command::Command;
use crate::time::Timestamp;

impl PeerNode {
    /// Looks whether there is a leader, and asks for votes if there is none.
    /// `quorum_near` tells whether enough peers can be reached at all: if not,
    /// the next change of the network starts the timer anew.
    pub(in crate::sim) fn on_election_timer(&mut self, quorum_near: bool, ctx: &mut Ctx<'_>) {
        if self.is_leader() || !self.is_voter() {
            return;
        }
        if ctx.leader_alive {
            self.tries = 0;
            return;
        }
        let quiet = self.last_heard + ctx.timing.election_timeout;
        if self.leader.is_some() && ctx.now < quiet {
            let rest = quiet.saturating_duration_since(ctx.now) + ctx.election_delay() / 4;
            self.arm(PeerTimer::Election, rest, ctx.out);
            return;
        }
        if !quorum_near {
            return;
        }
        self.tries = self.tries.saturating_add(1);
        let again = ctx.election_delay() * self.tries.min(4);
        self.arm(PeerTimer::Election, again, ctx.out);
        self.campaign(true, false, ctx);
    }

    /// Asks for votes; with `pre` first whether there would be any.
    pub(super) fn campaign(&mut self, pre: bool, force: bool, ctx: &mut Ctx<'_>) {
        let granted = BTreeSet::from([self.id]);
        let last = self.last();
        let message = if pre {
            Message::PreVote {
                term: self.term + 1,
                last,
            }
        } else {
            self.term += 1;
            self.vote = Some(self.id);
            self.leader = None;
            Message::Vote {
                term: self.term,
                last,
                force,
            }
        };
        self.fail_reads(ctx);
        self.role = Role::Candidate { pre, granted };
        for peer in &self.region.peers {
            if peer.id != self.id && peer.role.is_voter() {
                ctx.send(*peer, message.clone());
            }
        }
        self.count_votes(ctx);
    }

    /// Starts an election at once, as the first peer of a new region and the
    /// receiver of a leader transfer do.
    pub(in crate::sim) fn campaign_now(&mut self, force: bool, ctx: &mut Ctx<'_>) {
        if self.is_leader() || !self.is_voter() {
            return;
        }
        let again = ctx.election_delay();
        self.arm(PeerTimer::Election, again, ctx.out);
        self.campaign(!force, force, ctx);
    }

    fn count_votes(&mut self, ctx: &mut Ctx<'_>) {
        let Role::Candidate { pre, granted } = &self.role else {
            return;
        };
        if !quorum(&self.region.peers, |id| granted.contains(&id)) {
            return;
        }
        if *pre {
            self.campaign(false, false, ctx);
        } else {
            self.become_leader(ctx);
        }
    }

    pub(in crate::sim) fn become_leader(&mut self, ctx: &mut Ctx<'_>) {
        // Its own first entry is not among those it counts as pending.
        self.pending_conf = self.last_index();
        let next = self.last_index() + 1;
        let progress = |peer: &Peer| {
            let progress = Progress {
                next,
                recent: true,
                ..Progress::default()
            };
            (peer.id, progress)
        };
        let progress: BTreeMap<_, _> = self.region.peers.iter().map(progress).collect();
        self.leader = self.own();
        self.tries = 0;
        self.role = Role::Leader(Box::new(Leader {
            progress,
            awake_until: ctx.now,
            ticks: 0,
            lease_until: Timestamp::ZERO,
            reads: Vec::new(),
            transfer: None,
        }));
        for index in self.base.0 + 1..=self.applied {
            if let Some(entry) = self.entry(index) {
                ctx.history.applied_by_leader(entry.id, ctx.now);
            }
        }
        self.propose(0, Command::Empty, ctx);
        ctx.out.push(Out::Heartbeat);
    }

    /// Makes the leader of a cluster at rest, which has long committed an entry
    /// of its term and sleeps.
    pub(in crate::sim) fn lead_at_rest(&mut self) {
        let last = self.last_index();
        let progress = Progress {
            matched: last,
            next: last + 1,
            recent: true,
            ..Progress::default()
        };
        let peers = self.region.peers.iter();
        self.role = Role::Leader(Box::new(Leader {
            progress: peers.map(|peer| (peer.id, progress)).collect(),
            awake_until: Timestamp::ZERO,
            ticks: 0,
            lease_until: Timestamp::ZERO,
            reads: Vec::new(),
            transfer: None,
        }));
        self.vote = Some(self.id);
        self.leader = self.own();
    }

    pub(super) fn become_follower(&mut self, term: u64, leader: Option<Peer>, ctx: &mut Ctx<'_>) {
        self.fail_reads(ctx);
        if term > self.term {
            self.term = term;
            self.vote = None;
        }
        self.role = Role::Follower;
        self.leader = leader;
        if leader.is_none() {
            let delay = ctx.election_delay();
            self.arm(PeerTimer::Election, delay, ctx.out);
        }
    }

    /// Returns whether it must not help to replace a leader it may still have.
    fn clings(&self, ctx: &Ctx<'_>) -> bool {
        if ctx.leader_alive {
            return true;
        }
        match &self.role {
            Role::Leader(leader) => ctx.now < leader.lease_until,
            _ => self.leader.is_some() && ctx.now < self.last_heard + ctx.timing.election_timeout,
        }
    }

    pub(super) fn on_pre_vote(
        &mut self,
        from: Peer,
        term: u64,
        last: (u64, u64),
        ctx: &mut Ctx<'_>,
    ) {
        let granted = term > self.term && last >= self.last() && !self.clings(ctx);
        if !granted && ctx.leader_alive && self.is_leader() {
            // Whoever asks does not know of us.
            self.wake(ctx);
            self.send_append(from, ctx);
        }
        let own_term = self.term;
        let reply = Message::PreVoteReply {
            term,
            granted,
            own_term,
        };
        ctx.send(from, reply);
    }

    pub(super) fn on_pre_vote_reply(
        &mut self,
        from: PeerId,
        (term, granted, own_term): (u64, bool, u64),
        ctx: &mut Ctx<'_>,
    ) {
        if granted {
            let wanted = self.term + 1;
            if let Role::Candidate { pre: true, granted } = &mut self.role
                && term == wanted
            {
                granted.insert(from);
                self.count_votes(ctx);
            }
        } else if own_term > self.term {
            self.become_follower(own_term, None, ctx);
        }
    }

    pub(super) fn on_vote(
        &mut self,
        from: Peer,
        (term, last, force): (u64, (u64, u64), bool),
        ctx: &mut Ctx<'_>,
    ) {
        if term < self.term {
            let term = self.term;
            ctx.send(
                from,
                Message::VoteReply {
                    term,
                    granted: false,
                },
            );
            return;
        }
        if !force && self.clings(ctx) {
            return;
        }
        if term > self.term {
            self.become_follower(term, None, ctx);
        }
        let free = matches!(self.role, Role::Follower)
            && self.vote.is_none_or(|vote| vote == from.id)
            && self.leader.is_none();
        let granted = free && last >= self.last();
        if granted {
            self.vote = Some(from.id);
        }
        ctx.send(from, Message::VoteReply { term, granted });
    }

    pub(super) fn on_vote_reply(
        &mut self,
        from: PeerId,
        term: u64,
        granted: bool,
        ctx: &mut Ctx<'_>,
    ) {
        if term > self.term {
            self.become_follower(term, None, ctx);
            return;
        }
        let own_term = self.term;
        if let Role::Candidate {
            pre: false,
            granted: votes,
        } = &mut self.role
            && granted
            && term == own_term
        {
            votes.insert(from);
            self.count_votes(ctx);
        }
    }
}
