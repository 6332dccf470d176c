//! What goes in.

use crate::error::{Failure, FailureKind};
use crate::machine::{Event, Proof as ProofKind, RequestId};
use crate::progress::PhaseName;
use crate::region::{Claim, StoreId, WaitAnswer};

use super::attempt::{Confirmed, Listing, Proof};
use super::watch::Monitor;

impl Monitor {
    /// Notes an event that is about to be handed in.
    pub fn event(&mut self, event: &Event) {
        self.seq += 1;
        match event {
            Event::StoresListed { request, stores } => {
                let ids = stores
                    .iter()
                    .filter(|store| store.takes_part() && !store.id.is_none())
                    .map(|store| store.id)
                    .collect();
                self.stores_listed(*request, ids);
            }
            Event::StreamOpened { stream } => {
                let now = self.now;
                if let Some(stream) = self.attempt.streams.get_mut(stream)
                    && stream.is_alive()
                {
                    stream.opened.get_or_insert(now);
                }
            }
            Event::StreamEnded { stream, reason } => self.stream_ended(*stream, reason),
            Event::LeaseUpdated {
                request,
                last_lease_is_valid,
            } => self.lease_updated(*request, *last_lease_is_valid),
            Event::RegionsClaimed {
                request,
                claims,
                done,
            } => self.claimed(*request, claims, *done),
            Event::WaitApplyDone { stream, answers } => {
                for answer in answers {
                    self.wait_answered(*stream, answer);
                }
            }
            Event::LeaderReadDone { request, answers } => {
                for answer in answers {
                    let key = (*request, answer.region_id);
                    // An answer for another epoch answers nothing (R6).
                    let asked = self.attempt.reads.get(&key);
                    if asked.is_none_or(|read| read.epoch != answer.epoch) {
                        continue;
                    }
                    let Some(read) = self.attempt.reads.remove(&key) else {
                        continue;
                    };
                    if answer.result.is_ok() {
                        self.attempt.proofs.push(Proof {
                            store: read.store,
                            region: answer.region_id,
                            wait: read.wait,
                            seen: self.seq,
                        });
                    }
                }
            }
            Event::RegionsScanned { request, regions } => {
                if let Some(asked) = self.attempt.scans.remove(request) {
                    let named = regions.iter().filter_map(|scanned| {
                        scanned
                            .leader
                            .map(|store| (asked, scanned.region.id, store))
                    });
                    self.attempt.named.extend(named);
                }
            }
            Event::RequestFailed { request, .. } => self.failed(*request),
            Event::FinishRequested => self.finish_requested(),
            Event::CancelRequested => {
                self.unhold("cancelled");
                self.cancelled = true;
            }
            Event::LockLost => self.unhold("the lock was lost"),
        }
    }

    fn stores_listed(&mut self, request: RequestId, stores: std::collections::BTreeSet<StoreId>) {
        let timeout = self.config.call_timeout;
        let now = self.now;
        let fits = self
            .attempt
            .list_call
            .take_if(|call| call.request == request && now < call.sent + timeout);
        if let Some(call) = fits
            && (self.phase != PhaseName::Connect || !stores.is_empty())
        {
            self.attempt.stores = Some(stores);
            self.attempt.stores_asked = call.asked;
        }
    }

    fn stream_ended(&mut self, id: RequestId, reason: &Failure) {
        let Some(stream) = self.attempt.streams.get_mut(&id) else {
            return;
        };
        if !stream.is_alive() {
            return;
        }
        stream.ended = true;
        if reason.kind == FailureKind::Superseded {
            self.superseded.insert(stream.store);
        }
        self.unhold("a stream ended");
    }

    fn lease_updated(&mut self, request: RequestId, valid: bool) {
        let seq = self.seq;
        let found = self.attempt.streams.values_mut().find(|stream| {
            stream.finish == Some(request) || stream.pending.iter().any(|(id, ..)| *id == request)
        });
        let Some(stream) = found else {
            return;
        };
        if !stream.is_alive() {
            return;
        }
        if stream.finish == Some(request) {
            stream.finished.get_or_insert(valid);
            self.ledger.released(stream.store);
            return;
        }
        let Some(at) = stream.pending.iter().position(|(id, ..)| *id == request) else {
            return;
        };
        let (_, sent, sent_seq) = stream.pending.remove(at);
        let mut doubt = at > 0;
        let mut foreign = None;
        if stream.first_answered.is_none() {
            stream.first_answered = Some(seq);
            foreign = valid.then_some(stream.store);
        } else if valid {
            stream.renewed = Some(sent_seq);
        } else {
            doubt = true;
        }
        stream.acknowledged = stream.acknowledged.max(Some(sent));
        if doubt {
            stream.lapsed = true;
            self.unhold("a renewal was answered 'not valid', or out of order");
        } else if let Some(store) = foreign {
            self.note_foreign(store, request);
        }
    }

    fn claimed(&mut self, request: RequestId, claims: &[Claim], done: bool) {
        let timeout = self.config.call_timeout;
        let now = self.now;
        let found = self
            .attempt
            .listing_calls
            .iter_mut()
            .find(|(_, call)| call.request == request);
        let Some((store, call)) = found else {
            return;
        };
        if call.progress + timeout <= now {
            return;
        }
        call.progress = now;
        call.claims.extend_from_slice(claims);
        if !done {
            return;
        }
        let store = *store;
        if let Some(call) = self.attempt.listing_calls.remove(&store) {
            let listing = Listing {
                asked: call.asked,
                claims: call.claims,
            };
            self.attempt.history.push((store, listing.clone()));
            self.attempt.listings.insert(store, listing);
        }
    }

    fn wait_answered(&mut self, id: RequestId, answer: &WaitAnswer) {
        let Some(stream) = self.attempt.streams.get_mut(&id) else {
            return;
        };
        if !stream.is_alive() {
            return;
        }
        let Some(target) = answer.target else {
            // It can only be for the one that is in flight.
            if stream.waits.len() == 1 {
                stream.waits.clear();
            }
            return;
        };
        let Some(wait) = stream.waits.remove(&target.region_id) else {
            return;
        };
        if wait.epoch == target.epoch && answer.result.is_ok() {
            let store = stream.store;
            if self.config.proof == ProofKind::Claims {
                self.attempt.proofs.push(Proof {
                    store,
                    region: target.region_id,
                    wait: wait.clone(),
                    seen: self.seq,
                });
            }
            let key = (store, target.region_id);
            self.attempt.confirmed.insert(key, Confirmed { wait });
        }
    }

    fn failed(&mut self, request: RequestId) {
        self.attempt
            .list_call
            .take_if(|call| call.request == request);
        self.attempt
            .listing_calls
            .retain(|_, call| call.request != request);
        self.attempt.reads.retain(|(id, _), _| *id != request);
        self.attempt.scans.remove(&request);
    }

    fn finish_requested(&mut self) {
        if self.phase == PhaseName::Hold && !self.finish_requested {
            self.finish_requested = true;
            self.finish_is_clean = self.hold_lost.is_none();
        }
    }
}
