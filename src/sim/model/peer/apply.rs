use std::sync::Arc;

use super::types::{PeerTimer, Progress, Role};
use super::{Ctx, MergeState, Message, Out, PeerNode};
use crate::range::{EndKey, KeyRange};
use crate::region::Region;
use crate::sim::model::command::{Command, ConfPlan, Entry, MergeCommit, MergePlan, SplitPlan};

impl PeerNode {
    /// Applies what is committed, up to and with the next admin command.
    pub(in crate::sim) fn on_apply(&mut self, ctx: &mut Ctx<'_>) {
        while self.applied < self.commit {
            let Some(entry) = self.entry(self.applied + 1).cloned() else {
                break;
            };
            self.applied += 1;
            let is_admin = self.apply_entry(&entry, ctx);
            if entry.id != 0 && self.is_leader() {
                ctx.history.applied_by_leader(entry.id, ctx.now);
            }
            if is_admin {
                break;
            }
        }
        self.after_apply(ctx);
        if self.applied < self.commit {
            let delay = ctx.apply_delay;
            self.arm(PeerTimer::Apply, delay, ctx.out);
        }
    }

    /// Returns whether it was an admin command.
    fn apply_entry(&mut self, entry: &Entry, ctx: &mut Ctx<'_>) -> bool {
        match &entry.command {
            Command::Empty | Command::Put | Command::Ingest | Command::CompactLog => return false,
            Command::Split(plan) => self.apply_split(plan, ctx),
            Command::PrepareMerge(plan) => self.apply_prepare_merge(plan, entry.id, ctx),
            Command::CommitMerge(commit) => self.apply_commit_merge(commit, ctx),
            Command::RollbackMerge => self.apply_rollback(ctx),
            Command::ConfChange(plan) => self.apply_conf_change(plan, ctx),
        }
        if self.is_leader() {
            ctx.out.push(Out::Heartbeat);
        }
        true
    }

    fn change_region(&mut self, change: impl FnOnce(&mut Region)) {
        change(Arc::make_mut(&mut self.region));
    }

    fn apply_split(&mut self, plan: &Arc<SplitPlan>, ctx: &mut Ctx<'_>) {
        if plan.epoch != self.region.epoch {
            return;
        }
        let old = self.region.range.clone();
        let left = KeyRange::new(old.start().clone(), EndKey::Bounded(plan.key.clone()));
        let right = KeyRange::new(plan.key.clone(), old.end().clone());
        let (Some(left), Some(right)) = (left, right) else {
            return;
        };
        self.change_region(|region| {
            region.range = right;
            region.epoch.version += 1;
        });
        let new = Region {
            id: plan.new_region,
            range: left,
            epoch: self.region.epoch,
            peers: plan.new_peers.clone(),
        };
        let lead = self.is_leader();
        ctx.out
            .push(Out::Split(Arc::clone(plan), Arc::new(new), lead));
    }

    fn apply_prepare_merge(&mut self, plan: &Arc<MergePlan>, id: u64, ctx: &mut Ctx<'_>) {
        if plan.epoch != self.region.epoch {
            return;
        }
        self.change_region(|region| {
            region.epoch.conf_ver += 1;
            region.epoch.version += 1;
        });
        self.merge = Some(MergeState {
            target: plan.target,
            target_epoch: plan.target_epoch,
            prepare_id: id,
        });
        ctx.history.merge_prepared(id, self.region.id, ctx.now);
        let delay = ctx.timing.merge_check;
        self.arm(PeerTimer::Merge, delay, ctx.out);
    }

    fn apply_commit_merge(&mut self, commit: &Arc<MergeCommit>, ctx: &mut Ctx<'_>) {
        let source = &commit.source.range;
        let own = &self.region.range;
        let union = if EndKey::Bounded(own.start().clone()) == *source.end() {
            KeyRange::new(source.start().clone(), own.end().clone())
        } else if EndKey::Bounded(source.start().clone()) == *own.end() {
            KeyRange::new(own.start().clone(), source.end().clone())
        } else {
            None
        };
        let Some(union) = union else { return };
        if self.region.epoch != commit.target_epoch {
            return;
        }
        let version = commit.source.epoch.version.max(self.region.epoch.version) + 1;
        self.change_region(|region| {
            region.range = union;
            region.epoch.version = version;
        });
        ctx.history.merge_resolved(commit.prepare_id, true, ctx.now);
        ctx.out.push(Out::Absorb(Arc::clone(commit)));
    }

    fn apply_rollback(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(merge) = self.merge.take() {
            self.change_region(|region| region.epoch.version += 1);
            ctx.history.merge_resolved(merge.prepare_id, false, ctx.now);
        }
    }

    fn apply_conf_change(&mut self, plan: &Arc<ConfPlan>, ctx: &mut Ctx<'_>) {
        if plan.epoch != self.region.epoch {
            return;
        }
        let old = Arc::clone(&self.region);
        self.change_region(|region| {
            region.epoch.conf_ver += plan.changes;
            region.peers.clone_from(&plan.peers);
        });
        let conf_ver = self.region.epoch.conf_ver;
        let region = Arc::clone(&self.region);
        if let Role::Leader(leader) = &mut self.role {
            for peer in &old.peers {
                if !region.peers.iter().any(|kept| kept.id == peer.id) {
                    leader.progress.remove(&peer.id);
                    if peer.id != self.id {
                        ctx.out.push(Out::Send(*peer, Message::Gone { conf_ver }));
                    }
                }
            }
            for peer in &region.peers {
                leader.progress.entry(peer.id).or_insert(Progress {
                    needs_snapshot: true,
                    recent: true,
                    ..Progress::default()
                });
            }
        }
        if self.own().is_none() {
            ctx.out.push(Out::Destroy);
        } else if self.is_leader() {
            if self.is_voter() {
                self.wake(ctx);
                self.broadcast(ctx);
                self.maybe_commit(ctx);
            } else {
                let term = self.term;
                self.become_follower(term, None, ctx);
            }
        } else if !self.follows_voter() {
            // Its leader steps down, and says nothing any more.
            let delay = ctx.election_delay();
            self.arm(PeerTimer::Election, delay, ctx.out);
        }
    }

    /// Returns whether the leader it knows may lead.
    fn follows_voter(&self) -> bool {
        self.leader.is_some_and(|leader| {
            let mut peers = self.region.peers.iter();
            peers.any(|peer| peer.id == leader.id && peer.role.is_voter())
        })
    }
}
