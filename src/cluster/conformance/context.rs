use super::{Expectation, Verdict};
use crate::cluster::{Batches, ClusterClient};
use crate::error::Failure;
use crate::range::{EndKey, KeyRange};
use crate::region::{Claim, ScannedRegion, Store, StoreId, WaitTarget};

/// What a check makes of it: fine, or what is wrong.
pub(super) type Outcome = Result<Verdict, String>;

/// The most regions that a check asks a store for at once.
pub(super) const SAMPLE: usize = 64;

/// What a check works with.
pub(super) struct Context<'a, C> {
    pub(super) client: &'a C,
    pub(super) expected: &'a Expectation,
}

impl<C: ClusterClient> Context<'_, C> {
    pub(super) async fn stores(&self) -> Result<Vec<Store>, String> {
        self.client
            .list_stores()
            .await
            .map_err(failed("list_stores"))
    }

    /// Returns the stores that take part.
    pub(super) async fn participants(&self) -> Result<Vec<Store>, String> {
        let mut stores = self.stores().await?;
        stores.retain(Store::takes_part);
        Ok(stores)
    }

    /// Returns the store the suite was told to use.
    pub(super) async fn store(&self) -> Result<Store, String> {
        let id = self.expected.store;
        let stores = self.participants().await?;
        stores
            .into_iter()
            .find(|store| store.id == id)
            .ok_or_else(|| format!("store {id} is not listed, or takes no part"))
    }

    /// Returns another store that takes part, if there is one.
    pub(super) async fn other_store(&self) -> Result<Option<Store>, String> {
        let id = self.expected.store;
        let stores = self.participants().await?;
        Ok(stores.into_iter().find(|store| store.id != id))
    }

    pub(super) async fn scan(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> Result<Vec<ScannedRegion>, String> {
        self.client
            .scan_regions(range, limit)
            .await
            .map_err(failed("scan_regions"))
    }

    /// Scans all keys in pages of `limit`.
    pub(super) async fn scan_all(&self, limit: u32) -> Result<Vec<ScannedRegion>, String> {
        let mut all: Vec<ScannedRegion> = Vec::new();
        let mut rest = Some(KeyRange::whole());
        while let Some(range) = rest {
            let page = self.scan(range, limit).await?;
            let Some(last) = page.last() else {
                return Err("a page of a scan has no region, though keys are left".to_owned());
            };
            rest = match last.region.range.end() {
                EndKey::Unbounded => None,
                EndKey::Bounded(end) => KeyRange::new(end.clone(), EndKey::Unbounded),
            };
            all.extend(page);
            ensure(all.len() <= self.expected.regions, || {
                "the pages of a scan hold more regions than there are".to_owned()
            })?;
        }
        Ok(all)
    }

    /// Returns all claims of a store.
    pub(super) async fn claims(&self, store: &Store) -> Result<Vec<Claim>, String> {
        let listing = self.client.list_claims(store).await;
        let mut listing = listing.map_err(failed("list_claims"))?;
        let mut claims = Vec::new();
        while let Some(batch) = listing.next().await {
            let batch = batch.map_err(failed("the listing of claims"))?;
            ensure(!batch.is_empty(), || {
                "a batch of claims is empty".to_owned()
            })?;
            claims.extend(batch);
        }
        Ok(claims)
    }

    /// Returns some claims of the store the suite was told to use.
    pub(super) async fn some_claims(&self) -> Result<(Store, Vec<Claim>), String> {
        let store = self.store().await?;
        let mut claims = self.claims(&store).await?;
        claims.truncate(SAMPLE);
        ensure(!claims.is_empty(), || {
            format!("store {} claims no region", store.id)
        })?;
        Ok((store, claims))
    }

    /// Returns some regions to wait for at the store.
    pub(super) async fn some_targets(&self) -> Result<(Store, Vec<WaitTarget>), String> {
        let (store, claims) = self.some_claims().await?;
        let targets = claims.iter().map(wait_target).collect();
        Ok((store, targets))
    }
}

pub(super) fn wait_target(claim: &Claim) -> WaitTarget {
    WaitTarget {
        region_id: claim.region.id,
        epoch: claim.region.epoch,
    }
}

/// Says that a call failed that should not have.
pub(super) fn failed(what: &str) -> impl FnOnce(Failure) -> String {
    let what = what.to_owned();
    move |failure| format!("{what} failed as {:?}: {failure}", failure.kind)
}

pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

pub(super) fn ensure_sorted_stores(found: &[StoreId], expected: &[StoreId]) -> Result<(), String> {
    ensure(found == expected, || {
        format!("expected the stores {expected:?}, found {found:?}")
    })
}
