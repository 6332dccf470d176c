//! Waiting for regions on a prepare stream.

use std::collections::BTreeSet;

use super::Verdict;
use super::context::{Context, Outcome, ensure, failed};
use super::session::Session;
use crate::cluster::{ClusterClient, StreamAnswer};
use crate::error::FailureKind;
use crate::region::{RegionEpoch, RegionErrorKind, RegionId, WaitAnswer, WaitTarget};

pub(super) async fn without_lease<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, targets) = context.some_targets().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.send_wait(targets).await?;
    session.expect_end(FailureKind::LeaseLost).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn answered_once<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, targets) = context.some_targets().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    for _ in 0..2 {
        let answers = session.wait(targets.clone()).await?;
        expect_good(&targets, &answers)?;
    }
    ensure(session.finish().await?, || {
        "Finish with a lease in force was answered 'not valid'".to_owned()
    })?;
    Ok(Verdict::Passed)
}

pub(super) async fn between_renewals<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, targets) = context.some_targets().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.send_lease().await?;
    session.send_wait(targets.clone()).await?;
    session.send_lease().await?;
    session.send_lease().await?;
    let mut leases = Vec::new();
    let mut answers = Vec::new();
    while leases.len() < 3 || answers.len() < targets.len() {
        match session.next().await.map_err(failed("the stream"))? {
            StreamAnswer::WaitApplyDone(answer) => answers.push(answer),
            StreamAnswer::LeaseUpdated {
                last_lease_is_valid,
            } => leases.push(last_lease_is_valid),
        }
    }
    ensure(leases == [false, true, true], || {
        format!("three leases in a row were answered {leases:?}")
    })?;
    expect_good(&targets, &answers)?;
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn unknown_region<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, targets) = context.some_targets().await?;
    let good = targets.first().copied().ok_or("no region to wait for")?;
    let unknown = WaitTarget {
        region_id: RegionId(u64::MAX - 1),
        epoch: RegionEpoch {
            conf_ver: 1,
            version: 1,
        },
    };
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    let answers = session.wait(vec![unknown, good]).await?;
    expect_error(&answers, unknown, RegionErrorKind::RegionNotFound)?;
    let others: Vec<WaitAnswer> = without(&answers, unknown);
    expect_good(&[good], &others)?;
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn wrong_epoch<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let (store, targets) = context.some_targets().await?;
    let good = targets.first().copied().ok_or("no region to wait for")?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    for (conf_ver, version) in [(1, 0), (0, 1), (0, u64::MAX), (u64::MAX, 0)] {
        let wrong = WaitTarget {
            region_id: good.region_id,
            epoch: RegionEpoch {
                conf_ver: good.epoch.conf_ver.wrapping_add(conf_ver),
                version: good.epoch.version.wrapping_add(version),
            },
        };
        let answers = session.wait(vec![wrong]).await?;
        expect_error(&answers, wrong, RegionErrorKind::EpochNotMatch)?;
    }
    expect_good(&[good], &session.wait(vec![good]).await?)?;
    session.end().await?;
    Ok(Verdict::Passed)
}

/// Expects one good answer for each target.
fn expect_good(targets: &[WaitTarget], answers: &[WaitAnswer]) -> Result<(), String> {
    let mut missing: BTreeSet<WaitTarget> = targets.iter().copied().collect();
    for answer in answers {
        let target = answer.target.ok_or("an answer names no region")?;
        ensure(missing.remove(&target), || {
            format!(
                "region {} was answered twice, or with another epoch than asked for",
                target.region_id
            )
        })?;
        if let Err(error) = &answer.result {
            return Err(format!(
                "the wait for region {} failed as {:?}: {error}",
                target.region_id, error.kind
            ));
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(target) => Err(format!("region {} was not answered", target.region_id)),
    }
}

fn expect_error(
    answers: &[WaitAnswer],
    target: WaitTarget,
    kind: RegionErrorKind,
) -> Result<(), String> {
    let answer = answers.iter().find(|answer| answer.target == Some(target));
    match answer.map(|answer| &answer.result) {
        Some(Err(error)) if error.kind == kind => Ok(()),
        Some(other) => Err(format!("expected {kind:?}, found {other:?}")),
        None => Err(format!("expected {kind:?}, but no answer names the region")),
    }
}

fn without(answers: &[WaitAnswer], target: WaitTarget) -> Vec<WaitAnswer> {
    let others = answers
        .iter()
        .filter(|answer| answer.target != Some(target));
    others.cloned().collect()
}
