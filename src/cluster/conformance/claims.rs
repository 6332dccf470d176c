//! What stores claim.

use std::collections::BTreeMap;

use super::Verdict;
use super::context::{Context, Outcome, ensure, failed};
use crate::cluster::{Batches, ClusterClient};
use crate::region::{RegionId, ScannedRegion};

pub(super) async fn tile<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let scanned = context.scan_all(1024).await?;
    let mut unclaimed: BTreeMap<RegionId, &ScannedRegion> = scanned
        .iter()
        .map(|entry| (entry.region.id, entry))
        .collect();
    for store in context.participants().await? {
        for claim in context.claims(&store).await? {
            let region = &claim.region;
            let Some(known) = unclaimed.remove(&region.id) else {
                return Err(format!(
                    "region {} is claimed twice, or PD does not know it",
                    region.id
                ));
            };
            ensure(known.leader == Some(store.id), || {
                format!(
                    "region {} is claimed by store {}, PD says it is led by {:?}",
                    region.id, store.id, known.leader
                )
            })?;
            ensure(known.region.epoch == region.epoch, || {
                format!("region {} is claimed with another epoch", region.id)
            })?;
            ensure(known.region.range == region.range, || {
                format!("region {} is claimed with other boundaries", region.id)
            })?;
            ensure(region.peer_on(store.id).is_some(), || {
                format!("region {} is claimed without a peer there", region.id)
            })?;
            ensure(!claim.has_pending_admin, || {
                format!("region {} is claimed as pending", region.id)
            })?;
        }
    }
    match unclaimed.keys().next() {
        None => Ok(Verdict::Passed),
        Some(id) => Err(format!("region {id} is claimed by no store")),
    }
}

pub(super) async fn dropped<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let whole = context.claims(&store).await?;
    for _ in 0..3 {
        drop(context.client.list_claims(&store).await);
        let listing = context.client.list_claims(&store).await;
        let mut listing = listing.map_err(failed("list_claims"))?;
        if let Some(batch) = listing.next().await {
            batch.map_err(failed("the listing of claims"))?;
        }
    }
    let again = context.claims(&store).await?;
    ensure(again.len() == whole.len(), || {
        format!(
            "{} claims before some listings were dropped, {} after",
            whole.len(),
            again.len()
        )
    })?;
    Ok(Verdict::Passed)
}
