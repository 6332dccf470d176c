use std::sync::Arc;

use super::quorum::reached;
use super::types::{PendingRead, Role};
use super::{Ctx, Out, PeerNode, WaitTicket};
use crate::region::{Claim, PeerId, Region, WaitTarget};
use crate::sim::model::command::Command;
use crate::sim::model::history::Form;
use crate::sim::model::{CallId, ModelRegionError, ReadRequest, RegionErrorDetail};
use crate::time::Timestamp;

const ABORTED: &str =
    "wait apply has been aborted, perhaps epoch not match or leadership changed, note = ";

impl PeerNode {
    /// Answers `CheckPendingAdminOp`, if it believes to be leader.
    pub(in crate::sim) fn claim(&self) -> Option<Claim> {
        self.is_leader().then(|| Claim {
            region: Region::clone(&self.region),
            has_pending_admin: self.pending_conf > self.applied
                || self.committed_split > self.applied
                || self.committed_merge > self.applied
                || self.merge.is_some(),
        })
    }

    /// Returns what a client can make of it.
    pub(in crate::sim) fn form(&self) -> Form {
        let serves = self.is_leader() && self.term_at(self.commit) == Some(self.term);
        Form {
            epoch: self.region.epoch,
            leads_in: serves.then_some(self.term),
            claims: self.is_leader(),
        }
    }

    /// Takes in a wait; `None` when it lasts. The order of the checks is that
    /// of tikv `components/raftstore/src/store/fsm/peer.rs`.
    pub(in crate::sim) fn wait(
        &mut self,
        call: CallId,
        entry: u64,
        target: WaitTarget,
    ) -> Option<Result<(), ModelRegionError>> {
        if self.wait.is_some() {
            let message = format!("{ABORTED}Some(Duplicated)");
            return Some(Err(ModelRegionError::new(RegionErrorDetail::None, message)));
        }
        if target.epoch != self.region.epoch {
            let note = format!(
                "{ABORTED}Some(EpochNotMatch(current_regions {{ id: {} region_epoch {{ conf_ver: {} version: {} }} }}))",
                self.region.id, self.region.epoch.conf_ver, self.region.epoch.version
            );
            let current = vec![Region::clone(&self.region)];
            let detail = RegionErrorDetail::EpochNotMatch { current };
            return Some(Err(ModelRegionError::new(detail, note)));
        }
        let index = self.last_index();
        if self.applied >= index {
            return Some(Ok(()));
        }
        if !self.is_leader() && (self.vote.is_none() || self.own().is_none()) {
            return Some(Ok(()));
        }
        self.wait = Some(WaitTicket {
            call,
            entry,
            target,
            index,
            term: self.term,
        });
        None
    }

    /// Ends the wait of a peer that goes away: that counts as success.
    pub(in crate::sim) fn end_wait(&mut self, out: &mut Vec<Out>) {
        if let Some(ticket) = self.wait.take() {
            out.push(Out::WaitDone(ticket, Ok(())));
        }
    }

    /// Looks after what waits for something to be applied.
    pub(super) fn after_apply(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(ticket) = &self.wait {
            let result = if ticket.term != self.term {
                let message = format!(
                    "{ABORTED}Some(StaleCommand {{ expected_term: {}, current_term: {}, region_id: {} }})",
                    ticket.term, self.term, self.region.id
                );
                Some(Err(stale_command(message)))
            } else {
                (self.applied >= ticket.index).then_some(Ok(()))
            };
            if let Some(result) = result
                && let Some(ticket) = self.wait.take()
            {
                ctx.out.push(Out::WaitDone(ticket, result));
            }
        }
        self.serve_reads(ctx);
    }

    /// Takes in a read that is meant for a leader.
    pub(in crate::sim) fn read(&mut self, call: CallId, read: &ReadRequest, ctx: &mut Ctx<'_>) {
        let result = match self.check_read(read) {
            Ok(true) => Ok(()),
            Ok(false) => return self.read_as_leader(call, read, ctx),
            Err(error) => Err(error),
        };
        ctx.out.push(Out::ReadDone(call, result));
    }

    /// Says `Ok(true)` for a read that any replica may serve.
    fn check_read(&self, read: &ReadRequest) -> Result<bool, ModelRegionError> {
        let region_id = self.region.id;
        if read.peer_id != self.id {
            let detail = RegionErrorDetail::MismatchPeerId {
                requested: read.peer_id,
                actual: self.id,
            };
            let message = format!("mismatch peer id {} != {}", read.peer_id, self.id);
            return Err(ModelRegionError::new(detail, message));
        }
        if read.term != 0 && read.term < self.term {
            return Err(stale_command("stale command".to_owned()));
        }
        if !self.is_leader() {
            if read.stale_read {
                let peer_id = self.id;
                let detail = RegionErrorDetail::DataIsNotReady { region_id, peer_id };
                return Err(ModelRegionError::new(detail, "data is not ready"));
            }
            if !read.replica_read {
                let leader = self.leader;
                let detail = RegionErrorDetail::NotLeader { region_id, leader };
                let message = format!("peer is not leader for region {region_id}");
                return Err(ModelRegionError::new(detail, message));
            }
        }
        if read.epoch.version != self.region.epoch.version {
            return Err(self.epoch_error());
        }
        Ok(!self.is_leader())
    }

    fn epoch_error(&self) -> ModelRegionError {
        let current = vec![Region::clone(&self.region)];
        let message = format!("current epoch of region {} is another one", self.region.id);
        ModelRegionError::new(RegionErrorDetail::EpochNotMatch { current }, message)
    }

    fn read_as_leader(&mut self, call: CallId, read: &ReadRequest, ctx: &mut Ctx<'_>) {
        let refusal = if self.committed_split > self.applied {
            Some(self.not_ready("can not read index due to split"))
        } else if self.committed_merge > self.applied || self.merge.is_some() {
            Some(self.not_ready("can not read index due to merge"))
        } else if self.term_at(self.commit) != Some(self.term) {
            // Nothing of its own term is committed yet.
            Some(stale_command("stale command".to_owned()))
        } else {
            None
        };
        if let Some(error) = refusal {
            self.wake(ctx);
            ctx.out.push(Out::ReadDone(call, Err(error)));
            return;
        }
        let applied_own = self.term_at(self.applied) == Some(self.term);
        if let Role::Leader(leader) = &mut self.role {
            if applied_own && ctx.now < leader.lease_until && leader.transfer.is_none() {
                ctx.out.push(Out::ReadDone(call, Ok(())));
                return;
            }
            leader.reads.push(PendingRead {
                call,
                sent: ctx.now,
                index: None,
                version: read.epoch.version,
            });
        }
        self.wake(ctx);
        self.broadcast(ctx);
        self.confirm_reads(ctx);
    }

    fn not_ready(&self, reason: &str) -> ModelRegionError {
        let region_id = self.region.id;
        let reason = reason.to_owned();
        let message = format!("read index not ready, reason {reason}, region {region_id}");
        let detail = RegionErrorDetail::ReadIndexNotReady { reason, region_id };
        ModelRegionError::new(detail, message)
    }

    /// Marks the reads whose round a quorum has confirmed, and lengthens the
    /// leader's own lease.
    pub(super) fn confirm_reads(&mut self, ctx: &mut Ctx<'_>) {
        let (id, commit, now) = (self.id, self.commit, ctx.now);
        let hindered = self.committed_split > self.applied
            || self.committed_merge > self.applied
            || self.merge.is_some();
        let region = Arc::clone(&self.region);
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let acked = |peer: PeerId| {
            if peer == id {
                now
            } else {
                let progress = leader.progress.get(&peer);
                progress.map_or(Timestamp::ZERO, |p| p.acked)
            }
        };
        let Some(round) = reached(&region.peers, acked) else {
            return;
        };
        for read in &mut leader.reads {
            if read.index.is_none() && round >= read.sent {
                read.index = Some(commit);
            }
        }
        if !hindered && leader.transfer.is_none() && round > Timestamp::ZERO {
            let lease = round + ctx.timing.election_timeout * 9 / 10;
            leader.lease_until = leader.lease_until.max(lease);
        }
        self.serve_reads(ctx);
    }

    /// Answers the confirmed reads for which enough is applied. The version is
    /// compared again.
    fn serve_reads(&mut self, ctx: &mut Ctx<'_>) {
        let applied = self.applied;
        let ready = |read: &PendingRead| read.index.is_some_and(|index| index <= applied);
        let due = match &mut self.role {
            Role::Leader(leader) if leader.reads.iter().any(ready) => {
                let (due, rest) = std::mem::take(&mut leader.reads)
                    .into_iter()
                    .partition(ready);
                leader.reads = rest;
                due
            }
            _ => Vec::new(),
        };
        for read in due {
            let result = if read.version == self.region.epoch.version {
                Ok(())
            } else {
                Err(self.epoch_error())
            };
            ctx.out.push(Out::ReadDone(read.call, result));
        }
    }

    /// Refuses all reads of a leader that is none any more.
    pub(super) fn fail_reads(&mut self, ctx: &mut Ctx<'_>) {
        if let Role::Leader(leader) = &mut self.role {
            for read in std::mem::take(&mut leader.reads) {
                let error = stale_command("stale command".to_owned());
                ctx.out.push(Out::ReadDone(read.call, Err(error)));
            }
        }
    }

    /// Returns whether a command of a kind that may be under way only once is
    /// in the log and not applied.
    pub(in crate::sim) fn has_unapplied(&self, is: impl Fn(&Command) -> bool) -> bool {
        (self.applied + 1..=self.last_index())
            .filter_map(|index| self.entry(index))
            .any(|entry| is(&entry.command))
    }
}

pub(in crate::sim) fn stale_command(message: String) -> ModelRegionError {
    ModelRegionError::new(RegionErrorDetail::StaleCommand, message)
}
