//! What has to be true when the hold begins, and when it ends well.

use std::collections::BTreeSet;

use crate::machine::Proof as ProofKind;
use crate::range::KeyRangeSet;
use crate::region::{Claim, StoreId};

use super::attempt::{Listing, Proof, Seq};
use super::watch::Monitor;

impl Monitor {
    /// R14: the union of what was proven, and verified after that, is the whole
    /// target, and every store renewed after the last proof.
    pub(super) fn hold_is_proven(&self) -> Result<(), String> {
        let target = &self.config.target;
        let stores: BTreeSet<_> = self.attempt.leased().map(|stream| stream.store).collect();
        let leased = self
            .attempt
            .all_leased()
            .ok_or("a hold before all first leases were acknowledged")?;
        let mut verified = KeyRangeSet::new();
        let mut last_proof: Seq = leased;
        for store in &stores {
            let listing = self.attempt.listings.get(store).ok_or("no listing")?;
            for (at, claim) in listing.claims.iter().enumerate() {
                let range = &claim.region.range;
                let told_before = listing.claims[..at].contains(claim);
                if told_before || !range.overlaps(target) {
                    continue;
                }
                let region = claim.region.id;
                if claim.has_pending_admin {
                    return Err(format!("held while region {region} has something pending"));
                }
                if verified.overlaps(range) {
                    return Err(format!("held while region {region} is claimed twice"));
                }
                let stranger = claim
                    .region
                    .peers
                    .iter()
                    .find(|peer| peer.role.is_voter() && !stores.contains(&peer.store_id));
                if let Some(peer) = stranger {
                    return Err(format!("held without store {} (R11)", peer.store_id));
                }
                let proof = self.proof_of(*store, listing, claim, leased, &stores)?;
                last_proof = last_proof.max(proof);
                verified.insert(range);
            }
        }
        if let Some(gap) = verified.first_gap(target) {
            return Err(format!("held without {} (R12)", gap.reveal()));
        }
        self.all_was_compared_since(last_proof, &stores)
    }

    /// Finds the earliest proof that the claim verifies; returns when it was
    /// complete.
    fn proof_of(
        &self,
        store: StoreId,
        listing: &Listing,
        claim: &Claim,
        leased: Seq,
        stores: &BTreeSet<StoreId>,
    ) -> Result<Seq, String> {
        let fits = |proof: &&Proof| {
            proof.region == claim.region.id
                && proof.wait.epoch == claim.region.epoch
                && proof.wait.range == claim.region.range
                && proof.wait.sent > leased
                && proof.seen < listing.asked
                && self.was_only_claimer(proof, claim, leased, stores)
        };
        let proof = self.attempt.proofs.iter().find(fits);
        proof.map(|proof| proof.seen).ok_or_else(|| {
            format!(
                "held although region {} {} claimed by store {store} was not proven and verified \
                 after that (R13, R14)",
                claim.region.id, claim.region.epoch
            )
        })
    }

    /// R13 without reads: the store was the only claimer in listings after all
    /// leases, and PD named it.
    fn was_only_claimer(
        &self,
        proof: &Proof,
        claim: &Claim,
        leased: Seq,
        stores: &BTreeSet<StoreId>,
    ) -> bool {
        if self.config.proof == ProofKind::Read {
            return true;
        }
        let asked = proof.wait.sent;
        let named = self.attempt.named.iter().any(|(at, region, store)| {
            *at > leased && *at < asked && *region == proof.region && *store == proof.store
        });
        let alone = stores.iter().all(|store| {
            self.attempt.history.iter().any(|(other, listing)| {
                let claims = listing
                    .claims
                    .iter()
                    .any(|it| it.region.range.overlaps(&claim.region.range));
                other == store
                    && listing.asked > leased
                    && listing.asked < asked
                    && claims == (*store == proof.store)
            })
        });
        named && alone
    }

    fn all_was_compared_since(
        &self,
        last_proof: Seq,
        stores: &BTreeSet<StoreId>,
    ) -> Result<(), String> {
        for store in stores {
            if self
                .attempt
                .listings
                .get(store)
                .is_none_or(|listing| listing.asked < last_proof)
            {
                return Err(format!(
                    "store {store} was not listed after the last proof (R14)"
                ));
            }
        }
        for stream in self.attempt.leased() {
            if stream.renewed.is_none_or(|sent| sent < last_proof) {
                return Err(format!(
                    "store {} was not renewed after the last proof (R14)",
                    stream.store
                ));
            }
        }
        if self.attempt.stores_asked < last_proof {
            return Err("the stores were not listed after the last proof (R14)".to_owned());
        }
        let new = self
            .attempt
            .stores
            .iter()
            .flatten()
            .find(|store| !stores.contains(*store));
        match new {
            Some(store) => Err(format!("held without store {store} (R14)")),
            None => Ok(()),
        }
    }

    /// R16: the verdict is good only if nothing was in doubt until the end was
    /// asked for and every store was released and valid.
    pub(super) fn finished_is_earned(&self) -> Result<(), String> {
        if self.held_since.is_none() || !self.finish_requested {
            return Err("finished without a hold, or without being asked".to_owned());
        }
        if let Some(cause) = self.hold_lost.filter(|_| !self.finish_is_clean) {
            return Err(format!("finished well although {cause}"));
        }
        for stream in self.attempt.leased() {
            if !stream.pending.is_empty() {
                // Its answer could have told of a lapse that it repaired.
                return Err(format!(
                    "finished well although store {} left a renewal unanswered",
                    stream.store
                ));
            }
            if stream.finished != Some(true) || stream.lapsed {
                return Err(format!(
                    "finished well although store {} said {:?}",
                    stream.store, stream.finished
                ));
            }
        }
        Ok(())
    }
}
