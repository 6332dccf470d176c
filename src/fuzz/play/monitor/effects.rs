//! What comes out.

use std::collections::BTreeMap;

use crate::machine::{Effect, ForeignLease, Proof as ProofKind, RequestId};
use crate::progress::PhaseName;
use crate::region::{ReadTarget, Store, StoreId, WaitTarget};

use super::attempt::{ListCall, ListingCall, Read, Stream, Wait};
use super::watch::Monitor;

impl Monitor {
    /// Checks an effect; `phases` are the phases that the input led through.
    pub fn effect(&mut self, effect: &Effect, phases: &[PhaseName]) -> Result<(), String> {
        self.seq += 1;
        if self.closed {
            return Err(format!("{} after the end", effect.name()));
        }
        match effect {
            Effect::ListStores { request } => {
                self.attempt.list_call = Some(ListCall {
                    request: *request,
                    asked: self.seq,
                    sent: self.now,
                });
                Ok(())
            }
            Effect::OpenStream { stream, store } => self.open_stream(*stream, store, phases),
            Effect::UpdateLease {
                request,
                stream,
                store_id,
                seconds,
            } => {
                if *seconds != self.config.lease.as_secs() {
                    return Err("another lease than configured (R3)".to_owned());
                }
                self.update_lease(*request, *stream, *store_id)
            }
            Effect::ListClaims { request, store } => {
                let call = ListingCall {
                    request: *request,
                    asked: self.seq,
                    progress: self.now,
                    claims: Vec::new(),
                };
                self.attempt.listing_calls.insert(store.id, call);
                Ok(())
            }
            Effect::WaitApply {
                stream,
                store_id,
                regions,
            } => self.wait_apply(*stream, *store_id, regions),
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => self.leader_read(*request, store.id, regions),
            Effect::ScanRegions { request, limit, .. } => {
                self.attempt.scans.insert(*request, self.seq);
                match *limit == self.config.page_size {
                    true => Ok(()),
                    false => Err("a scan with another limit than the page size".to_owned()),
                }
            }
            Effect::Finish {
                request,
                stream,
                store_id,
            } => self.finish(*request, *stream, *store_id),
            Effect::CloseStream { stream, .. } => match self.attempt.streams.get_mut(stream) {
                Some(stream) => {
                    stream.closed = true;
                    Ok(())
                }
                None => Err("a stream is closed that was never opened".to_owned()),
            },
        }
    }

    /// R1, R5, R16: streams are opened in `Connect` only, one per store, and
    /// never again where a rival took over.
    fn open_stream(
        &mut self,
        id: RequestId,
        store: &Store,
        phases: &[PhaseName],
    ) -> Result<(), String> {
        let connecting = self.phase == PhaseName::Connect || phases.contains(&PhaseName::Connect);
        if !connecting {
            return Err(format!("a stream is opened in phase {} (R16)", self.phase));
        }
        if self.superseded.contains(&store.id) {
            return Err(format!(
                "store {} is dialled after it was superseded (R5)",
                store.id
            ));
        }
        let alive = self
            .attempt
            .streams
            .values()
            .any(|stream| stream.store == store.id && stream.is_alive());
        if alive {
            return Err(format!("store {} gets a second stream", store.id));
        }
        let unprobed = self
            .attempt
            .stores
            .iter()
            .flatten()
            .find(|id| !self.attempt.listings.contains_key(*id));
        if let Some(id) = unprobed {
            return Err(format!(
                "a stream is opened before store {id} was probed (R1)"
            ));
        }
        self.attempt.streams.insert(id, Stream::new(store.id));
        Ok(())
    }

    /// R1, R3: leases only when all streams stand, and none after Finish.
    fn update_lease(
        &mut self,
        request: RequestId,
        id: RequestId,
        store: StoreId,
    ) -> Result<(), String> {
        let now = self.now;
        let seq = self.seq;
        for store in self.attempt.stores.iter().flatten() {
            let stands = self.attempt.streams.values().any(|stream| {
                stream.store == *store
                    && (stream.is_leased() || stream.is_alive())
                    && stream
                        .opened
                        .is_some_and(|at| at + self.config.settle <= now)
            });
            // A store that joins later ends the attempt.
            let is_first = self.attempt.all_leased().is_none();
            if is_first && !stands {
                return Err(format!(
                    "a lease is asked for before store {store} has an open, settled stream (R1)"
                ));
            }
        }
        let Some(stream) = self.attempt.streams.get_mut(&id) else {
            return Err("a lease on a stream of no attempt".to_owned());
        };
        if stream.store != store || !stream.is_alive() {
            return Err(format!(
                "a lease for store {store} on a stream that is not open"
            ));
        }
        if stream.finish.is_some() {
            return Err(format!("a renewal for store {store} after Finish (R3)"));
        }
        stream.pending.push((request, now, seq));
        stream.last_sent = Some(now);
        self.ledger.leased(store, now);
        self.note_first_lease(store, request);
        Ok(())
    }

    /// R2, R3, R6, R7: waits only when all are leased, on leases that are in
    /// force, for what the store claims, once, and within the window.
    fn wait_apply(
        &mut self,
        id: RequestId,
        store: StoreId,
        targets: &[WaitTarget],
    ) -> Result<(), String> {
        if self.attempt.all_leased().is_none() {
            return Err("a wait before all first leases were acknowledged (R2)".to_owned());
        }
        let mut waits = BTreeMap::new();
        for target in targets {
            let claim = self
                .attempt
                .claim(store, target.region_id, target.epoch)
                .ok_or_else(|| {
                    format!(
                        "store {store} is asked for region {}, which it does not claim so (R6)",
                        target.region_id
                    )
                })?;
            let wait = Wait {
                epoch: target.epoch,
                range: claim.region.range.clone(),
                sent: self.seq,
            };
            if waits.insert(target.region_id, wait).is_some() {
                return Err("a region twice in one request (R7)".to_owned());
            }
        }
        let config = &self.config;
        let now = self.now;
        let Some(stream) = self.attempt.streams.get_mut(&id) else {
            return Err("a wait on a stream of no attempt".to_owned());
        };
        if stream.store != store || !stream.is_alive() || stream.finish.is_some() {
            return Err(format!(
                "a wait for store {store} on a stream that is not open"
            ));
        }
        if stream.is_over(config, now) {
            return Err(format!(
                "store {store} is asked although its lease ran out (R3)"
            ));
        }
        for (region, wait) in waits {
            if stream.waits.insert(region, wait).is_some() {
                return Err(format!(
                    "region {region} is asked twice at store {store} (R7)"
                ));
            }
        }
        if stream.waits.len() > config.window as usize {
            return Err(format!(
                "{} waits in flight at store {store} (R7)",
                stream.waits.len()
            ));
        }
        Ok(())
    }

    /// R13: a read only of what the same store has confirmed.
    fn leader_read(
        &mut self,
        request: RequestId,
        store: StoreId,
        targets: &[ReadTarget],
    ) -> Result<(), String> {
        if self.config.proof == ProofKind::Claims {
            return Err("a read although the proof is by claims".to_owned());
        }
        for target in targets {
            let confirmed = self.attempt.confirmed.remove(&(store, target.region_id));
            let Some(confirmed) = confirmed.filter(|it| it.wait.epoch == target.epoch) else {
                return Err(format!(
                    "region {} is read at store {store}, which has not confirmed it since (R13)",
                    target.region_id
                ));
            };
            let read = Read {
                store,
                epoch: target.epoch,
                wait: confirmed.wait,
            };
            self.attempt.reads.insert((request, target.region_id), read);
        }
        Ok(())
    }

    /// R5, R16: Finish once, where our lease may be, and not on another's.
    fn finish(&mut self, request: RequestId, id: RequestId, store: StoreId) -> Result<(), String> {
        let foreign =
            self.config.foreign_lease == ForeignLease::Refuse && self.foreign.contains(&store);
        let Some(stream) = self.attempt.streams.get_mut(&id) else {
            return Err("Finish on a stream of no attempt".to_owned());
        };
        if stream.store != store || !stream.is_alive() || !stream.is_leased() {
            return Err(format!(
                "Finish for store {store} on a stream that has no lease"
            ));
        }
        if foreign {
            return Err(format!(
                "Finish lifts another's lease at store {store} (R5)"
            ));
        }
        if stream.finish.replace(request).is_some() {
            return Err(format!("a second Finish for store {store} (R16)"));
        }
        Ok(())
    }
}
