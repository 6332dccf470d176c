//! Leader reads.

use std::collections::BTreeMap;

use super::Verdict;
use super::context::{Context, Outcome, ensure, failed};
use crate::cluster::{Batches, ClusterClient};
use crate::region::{
    Claim, PeerId, ReadAnswer, ReadTarget, RegionErrorKind, RegionId, Store, StoreId,
};

pub(super) async fn at_leader<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, claims) = context.some_claims().await?;
    let targets = targets_on(store.id, &claims);
    ensure(targets.len() == claims.len(), || {
        "a claim has no peer on the store that claims".to_owned()
    })?;
    for answer in read(context, &store, &targets).await? {
        expect_served(&answer)?;
    }
    let none = read(context, &store, &[]).await?;
    ensure(none.is_empty(), || {
        "a read of nothing was answered".to_owned()
    })?;
    Ok(Verdict::Passed)
}

pub(super) async fn elsewhere<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let Some(other) = context.other_store().await? else {
        return Ok(Verdict::Skipped("there is one store only"));
    };
    let (_, claims) = context.some_claims().await?;
    let followers = targets_on(other.id, &claims);
    for answer in read(context, &other, &followers).await? {
        expect_refused(&answer, RegionErrorKind::NotLeader)?;
    }
    let strangers: Vec<ReadTarget> = claims
        .iter()
        .filter(|claim| claim.region.peer_on(other.id).is_none())
        .filter_map(|claim| Some(target(claim, claim.region.peers.first()?.id)))
        .collect();
    for answer in read(context, &other, &strangers).await? {
        expect_refused(&answer, RegionErrorKind::RegionNotFound)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn wrong_epoch<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, claims) = context.some_claims().await?;
    let targets = targets_on(store.id, &claims);
    let mut target = *targets.first().ok_or("no region to read")?;
    target.epoch.version += 1;
    for answer in read(context, &store, &[target]).await? {
        expect_refused(&answer, RegionErrorKind::EpochNotMatch)?;
    }
    target.epoch.version -= 1;
    target.epoch.conf_ver += 1;
    for answer in read(context, &store, &[target]).await? {
        expect_served(&answer)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn wrong_target<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, claims) = context.some_claims().await?;
    let targets = targets_on(store.id, &claims);
    let good = *targets.first().ok_or("no region to read")?;
    let unknown = ReadTarget {
        region_id: RegionId(u64::MAX - 1),
        ..good
    };
    let wrong_peer = ReadTarget {
        peer_id: PeerId(u64::MAX - 1),
        ..good
    };
    // The wrong ones do not spoil the good one.
    let answers = read(context, &store, &[unknown, good]).await?;
    for answer in &answers {
        if answer.region_id == unknown.region_id {
            expect_refused(answer, RegionErrorKind::RegionNotFound)?;
        } else {
            expect_served(answer)?;
        }
    }
    for answer in read(context, &store, &[wrong_peer]).await? {
        expect_refused(&answer, RegionErrorKind::WrongPeer)?;
    }
    Ok(Verdict::Passed)
}

/// Reads, and expects one answer for each target.
async fn read<C: ClusterClient>(
    context: &Context<'_, C>,
    store: &Store,
    targets: &[ReadTarget],
) -> Result<Vec<ReadAnswer>, String> {
    let mut missing: BTreeMap<RegionId, &ReadTarget> = targets
        .iter()
        .map(|target| (target.region_id, target))
        .collect();
    let reads = context.client.leader_reads(store, targets.to_vec()).await;
    let mut reads = reads.map_err(failed("leader_reads"))?;
    let mut answers = Vec::new();
    while let Some(batch) = reads.next().await {
        let batch = batch.map_err(failed("the answers to the reads"))?;
        ensure(!batch.is_empty(), || "a batch of reads is empty".to_owned())?;
        for answer in batch {
            let target = missing.remove(&answer.region_id);
            ensure(target.is_some_and(|t| t.epoch == answer.epoch), || {
                format!(
                    "the read of region {} was answered twice, or with another epoch than sent",
                    answer.region_id
                )
            })?;
            answers.push(answer);
        }
    }
    match missing.keys().next() {
        None => Ok(answers),
        Some(id) => Err(format!("the read of region {id} was not answered")),
    }
}

/// Returns how to read the claimed regions from their peers on `store`.
fn targets_on(store: StoreId, claims: &[Claim]) -> Vec<ReadTarget> {
    claims
        .iter()
        .filter_map(|claim| Some(target(claim, claim.region.peer_on(store)?.id)))
        .collect()
}

fn target(claim: &Claim, peer_id: PeerId) -> ReadTarget {
    ReadTarget {
        region_id: claim.region.id,
        epoch: claim.region.epoch,
        peer_id,
    }
}

fn expect_served(answer: &ReadAnswer) -> Result<(), String> {
    match &answer.result {
        Ok(()) => Ok(()),
        Err(error) => Err(format!(
            "the read of region {} was refused as {:?}: {error}",
            answer.region_id, error.kind
        )),
    }
}

fn expect_refused(answer: &ReadAnswer, kind: RegionErrorKind) -> Result<(), String> {
    match &answer.result {
        Err(error) if error.kind == kind => Ok(()),
        other => Err(format!(
            "the read of region {} should be refused as {kind:?}, found {other:?}",
            answer.region_id
        )),
    }
}
