//! Answers on their way back to the machine.

use std::time::Duration;

use super::bounds::Fault;
use super::call::{Ask, Call, Claimed, Reply};
use super::sight::Sight;
use super::state::{Small, key_range};
use super::store::{Down, Target};
use crate::error::{Failure, FailureKind};
use crate::machine::{Event, RequestId};
use crate::progress::PhaseName;
use crate::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionError, RegionErrorKind,
    RegionId, ScannedRegion, Store, StoreId, WaitAnswer, WaitTarget,
};

impl Small {
    /// The answer to a call arrives; `spoiled` says what is wrong with PD's.
    pub(super) fn answer(&mut self, at: usize, spoiled: Option<(Option<Fault>, u8)>) {
        if self.calls.get(at).is_some_and(|call| call.reply.is_none()) {
            self.serve_call(at);
        }
        if at >= self.calls.len() {
            return;
        }
        let call = self.calls.remove(at);
        if call.is_old {
            self.spend(Fault::Late);
            self.judge.sights.see(Sight::Late);
        }
        let request = call.number;
        let event = match (call.ask, call.reply) {
            (Ask::Stores, _) => Event::StoresListed {
                request,
                stores: (1..=self.nodes.len() as u64).map(store).collect(),
            },
            (Ask::Scan(from, to, limit), _) => Event::RegionsScanned {
                request,
                regions: self.scan(from, to, limit, spoiled),
            },
            (Ask::Claims(_), Some(Reply::Claims(claims))) => Event::RegionsClaimed {
                request,
                claims: claims.iter().map(|claim| self.claim(claim)).collect(),
                done: true,
            },
            (Ask::Read(_, target), Some(Reply::Read(result))) => Event::LeaderReadDone {
                request,
                answers: vec![ReadAnswer {
                    region_id: RegionId(u64::from(target.region)),
                    epoch: epoch(target.version),
                    result: result.map_err(region_error),
                }],
            },
            (Ask::Claims(_) | Ask::Read(..), _) => return,
        };
        let before = self.machine.phase();
        self.input(Some(event));
        if before == PhaseName::Verify
            && self.machine.phase() == PhaseName::Verify
            && self.machine.progress().retrying > 0
        {
            self.judge.sights.see(Sight::Difference);
        }
    }

    fn claim(&self, claimed: &Claimed) -> Claim {
        Claim {
            region: self.region(claimed),
            has_pending_admin: claimed.is_pending,
        }
    }

    fn region(&self, claimed: &Claimed) -> Region {
        let id = u64::from(claimed.region);
        let peers = (1..=self.nodes.len() as u64).map(|store| Peer {
            id: PeerId(id * 10 + store),
            store_id: StoreId(store),
            role: PeerRole::Voter,
        });
        Region {
            id: RegionId(id),
            range: key_range(claimed.from, claimed.to, self.end()),
            epoch: epoch(claimed.version),
            peers: peers.collect(),
        }
    }

    fn scan(
        &self,
        from: u8,
        to: u8,
        limit: u32,
        spoiled: Option<(Option<Fault>, u8)>,
    ) -> Vec<ScannedRegion> {
        let mut view = self.pd_view();
        view.retain(|region| region.from < to && from < region.to);
        match spoiled {
            Some((Some(Fault::PdGap), at)) if usize::from(at) < view.len() => {
                view.remove(usize::from(at));
            }
            Some((_, at)) => {
                if let Some(region) = view.get_mut(usize::from(at)) {
                    region.leader = None;
                }
            }
            None => {}
        }
        let regions = view
            .iter()
            .take(limit as usize)
            .map(|region| ScannedRegion {
                region: self.region(region),
                leader: region.leader.map(|leader| StoreId(u64::from(leader) + 1)),
            });
        regions.collect()
    }

    pub(super) fn fail_call(&mut self, at: usize) {
        let Some(request) = self.calls.get(at).map(|call| call.number) else {
            return;
        };
        self.calls.retain(|call: &Call| call.number != request);
        let failure = Failure::new(FailureKind::Unavailable, "");
        self.input(Some(Event::RequestFailed { request, failure }));
    }

    pub(super) fn refuse_read(&mut self, at: usize) {
        if let Some(call) = self.calls.get_mut(at) {
            call.reply = Some(Reply::Read(Err(RegionErrorKind::ServerIsBusy {
                backoff: Duration::ZERO,
            })));
        }
    }

    /// The next message of the present stream arrives.
    pub(super) fn deliver_present(&mut self, store: usize) {
        let is_empty = |small: &mut Self| {
            let node = small.nodes.get_mut(store);
            node.and_then(|node| node.present())
                .is_some_and(|stream| stream.down.is_empty())
        };
        if is_empty(self) {
            self.serve_stream(store);
        }
        let Some(node) = self.nodes.get_mut(store) else {
            return;
        };
        let Some(stream) = node.present() else {
            return;
        };
        let number = stream.number;
        let Some(down) = stream.down.pop_front() else {
            return;
        };
        let is_leased = stream.is_leased;
        match down {
            Down::Lease {
                is_valid, is_sound, ..
            } => {
                let is_first = !std::mem::replace(&mut stream.is_acknowledged, true);
                self.note_lease(store, is_first, is_valid, is_sound);
            }
            Down::End(kind) => {
                stream.has_ended = true;
                self.note_end(store, is_leased, kind);
            }
            Down::Wait(..) | Down::Finished { .. } => {}
        }
        self.arrive(number, down);
    }

    fn note_lease(&mut self, store: usize, is_first: bool, is_valid: bool, is_sound: bool) {
        if let Some(sound) = self.judge.is_sound.get_mut(store) {
            *sound = is_sound;
        }
        if !is_first && !is_valid {
            self.judge.sights.see(Sight::NotValid);
            self.note_doubt();
        }
    }

    fn note_end(&mut self, store: usize, is_leased: bool, kind: FailureKind) {
        if kind == FailureKind::Superseded
            && let Some(superseded) = self.judge.is_superseded.get_mut(store)
        {
            *superseded = true;
        }
        if is_leased {
            self.note_doubt();
        }
    }

    /// Something arrives that leaves doubt, unless the end was asked for.
    fn note_doubt(&mut self) {
        if !matches!(self.machine.phase(), PhaseName::Release | PhaseName::Closed) {
            self.judge.has_doubt = true;
        }
    }

    /// The next message of a stream that was closed arrives nevertheless.
    pub(super) fn deliver_late(&mut self, store: usize, stream: usize) {
        let found = self
            .nodes
            .get_mut(store)
            .and_then(|node| node.streams.get_mut(stream));
        if let Some(stream) = found
            && let Some(down) = stream.down.pop_front()
        {
            let number = stream.number;
            self.judge.sights.see(Sight::Late);
            self.arrive(number, down);
        }
    }

    fn arrive(&mut self, stream: RequestId, down: Down) {
        let event = match down {
            Down::Lease {
                request, is_valid, ..
            }
            | Down::Finished { request, is_valid } => Event::LeaseUpdated {
                request,
                last_lease_is_valid: is_valid,
            },
            Down::Wait(target, result) => Event::WaitApplyDone {
                stream,
                answers: vec![WaitAnswer {
                    target: Some(wait_target(target)),
                    result: result.map_err(region_error),
                }],
            },
            Down::End(kind) => return self.end_event(stream, kind),
        };
        self.input(Some(event));
    }

    pub(super) fn end_event(&mut self, stream: RequestId, kind: FailureKind) {
        let reason = Failure::new(kind, "");
        self.input(Some(Event::StreamEnded { stream, reason }));
    }
}

fn store(id: u64) -> Store {
    Store {
        id: StoreId(id),
        ..Store::default()
    }
}

const fn epoch(version: u8) -> RegionEpoch {
    RegionEpoch {
        conf_ver: 1,
        version: version as u64,
    }
}

fn wait_target(target: Target) -> WaitTarget {
    WaitTarget {
        region_id: RegionId(u64::from(target.region)),
        epoch: epoch(target.version),
    }
}

fn region_error(kind: RegionErrorKind) -> RegionError {
    RegionError::new(kind, "")
}
