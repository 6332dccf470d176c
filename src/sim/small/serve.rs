//! What stores and PD answer.

use super::bounds::Fault;
use super::call::{Ask, Claimed, Reply};
use super::sight::Sight;
use super::state::Small;
use super::store::{Down, LEASE, Lease, StreamState, Target, Up, Wait};
use crate::error::FailureKind;
use crate::region::RegionErrorKind as E;

impl Small {
    /// A store or PD takes in a call.
    pub(super) fn serve_call(&mut self, at: usize) {
        let Some(ask) = self.calls.get(at).map(|call| call.ask.clone()) else {
            return;
        };
        let reply = match ask {
            Ask::Claims(store) => Reply::Claims(self.claims(store)),
            Ask::Read(store, target) => Reply::Read(self.read(store, target)),
            // These are answered as things are when the answer arrives.
            Ask::Stores | Ask::Scan(..) => return,
        };
        if let Some(call) = self.calls.get_mut(at) {
            call.reply = Some(reply);
        }
    }

    /// Returns what a store says to lead, also what it leads no more and does not
    /// know of.
    fn claims(&self, store: u8) -> Vec<Claimed> {
        let mut claims = Vec::new();
        for group in &self.groups {
            if let Some(cut) = group.cut.filter(|cut| cut.store == store) {
                claims.push(Claimed {
                    region: group.id,
                    from: cut.from,
                    to: cut.to,
                    version: cut.version,
                    is_pending: cut.is_pending,
                    leader: None,
                });
            } else if group.leader == Some(store) {
                claims.push(Claimed {
                    region: group.id,
                    from: group.from,
                    to: group.to,
                    version: group.version,
                    is_pending: group.is_pending(),
                    leader: None,
                });
            }
        }
        claims
    }

    fn read(&mut self, store: u8, target: Target) -> Result<(), E> {
        let Some(group) = self.group(target.region) else {
            return Err(E::RegionNotFound);
        };
        if group.cut.is_some_and(|cut| cut.store == store) {
            self.judge.sights.see(Sight::ClaimRefuted);
            return Err(E::StaleCommand);
        }
        if group.is_gone {
            return Err(E::RegionNotFound);
        }
        if group.leader != Some(store) {
            return Err(E::NotLeader);
        }
        if group.version != target.version {
            return Err(E::EpochNotMatch);
        }
        if group.merging.is_some() || group.has_admin_to_apply() {
            return Err(E::NotReady);
        }
        if !group.is_settled() {
            return Err(E::StaleCommand);
        }
        Ok(())
    }

    /// A store takes in the next request of its present stream.
    pub(super) fn serve_stream(&mut self, store: usize) {
        let node = self.nodes.get_mut(store);
        let Some(stream) = node.and_then(|node| node.present()) else {
            return;
        };
        let number = stream.number;
        let Some(up) = stream.up.pop_front() else {
            return;
        };
        let answer = match up {
            Up::Lease(request) => {
                let is_valid = self.lease(store);
                let has_break = self.judge.has_break.get(store).copied();
                Some(Down::Lease {
                    request,
                    is_valid,
                    is_sound: is_valid && self.judge.has_waited && has_break == Some(false),
                })
            }
            Up::Wait(target) => self.wait(store, target, number),
            Up::Finish(request) => Some(self.finish(store, request)),
        };
        let node = self.nodes.get_mut(store);
        let Some(stream) = node.and_then(|node| node.present()) else {
            return;
        };
        let ends = match answer {
            Some(Down::Finished { .. }) => Some(FailureKind::Finished),
            Some(Down::End(kind)) => Some(kind),
            _ => None,
        };
        stream
            .down
            .extend(answer.filter(|down| !matches!(down, Down::End(_))));
        if let Some(kind) = ends {
            stream.state = StreamState::Ended;
            stream.up.clear();
            stream.down.push_back(Down::End(kind));
            if let Some(node) = self.nodes.get_mut(store) {
                node.orphan_waits();
            }
        }
    }

    /// Renews a lease; returns whether one was in force.
    fn lease(&mut self, store: usize) -> bool {
        let Some(node) = self.nodes.get_mut(store) else {
            return false;
        };
        let was = node.lease.is_some();
        node.lease = Some(Lease {
            left: LEASE,
            is_ours: true,
        });
        was
    }

    fn finish(&mut self, store: usize, request: crate::machine::RequestId) -> Down {
        let node = self.nodes.get_mut(store);
        let is_valid = node.is_some_and(|node| node.lease.take().is_some());
        self.judge.lease_ended(store);
        if let Some(finished) = self.judge.finished.get_mut(store) {
            *finished = Some(is_valid);
        }
        Down::Finished { request, is_valid }
    }

    fn wait(
        &mut self,
        store: usize,
        target: Target,
        stream: crate::machine::RequestId,
    ) -> Option<Down> {
        let node = self.nodes.get_mut(store)?;
        if node.lease.is_none() {
            self.judge.sights.see(Sight::WaitWithoutLease);
            return Some(Down::End(FailureKind::LeaseLost));
        }
        let answer = |result| Some(Down::Wait(target, result));
        let group = self.groups.iter().find(|group| group.id == target.region);
        let Some(group) = group else {
            return answer(Err(E::RegionNotFound));
        };
        let cut = group.cut.filter(|cut| usize::from(cut.store) == store);
        if group.is_gone && cut.is_none() {
            return answer(Err(E::RegionNotFound));
        }
        let mut waits = node.waits.iter();
        if waits.any(|wait| wait.target.region == target.region) {
            self.judge.sights.see(Sight::Duplicated);
            return answer(Err(E::Duplicated));
        }
        if cut.map_or(group.version, |cut| cut.version) != target.version {
            return answer(Err(E::EpochNotMatch));
        }
        let leads = group.leader.map(usize::from) == Some(store);
        let is_over = match cut {
            Some(cut) => cut.is_idle,
            // A follower that has not voted in this term waits for nothing.
            None => !leads || group.is_idle_at(store as u8),
        };
        if is_over {
            if !leads {
                self.judge.sights.see(Sight::ConfirmedByOther);
            }
            return answer(Ok(()));
        }
        node.waits.push(Wait {
            target,
            index: group.last_index(),
            stream: Some(stream),
        });
        None
    }

    /// Ends a lease, by whatever.
    pub(super) fn lift_lease(&mut self, store: usize) {
        let node = self.nodes.get_mut(store);
        if node.is_some_and(|node| node.lease.take().is_some()) {
            self.judge.lease_ended(store);
        }
    }

    /// Returns whether the next request of a stream is a wait.
    pub(super) fn next_is_wait(&self, store: usize) -> bool {
        self.nodes.get(store).is_some_and(|node| {
            let present = node.streams.iter().find(|stream| !stream.is_closed);
            present.is_some_and(|stream| matches!(stream.up.front(), Some(Up::Wait(_))))
        })
    }

    pub(super) fn spend(&mut self, fault: Fault) {
        if let Some(spent) = self.spent.get_mut(fault as usize) {
            *spent += 1;
        }
    }
}
