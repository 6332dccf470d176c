//! Leases, and how streams end.

use super::Verdict;
use super::context::{Context, Outcome, ensure};
use super::session::Session;
use crate::cluster::{ClusterClient, PrepareReceiver};
use crate::error::FailureKind;

pub(super) async fn first_then_renewed<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    for _ in 0..3 {
        ensure(session.lease().await?, || {
            "a renewal in time was answered 'not valid'".to_owned()
        })?;
    }
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn answer_kept<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    for _ in 0..8 {
        session.send_lease().await?;
        session.poll_and_drop().await?;
        ensure(session.lease_answer().await?, || {
            "a renewal in time was answered 'not valid'".to_owned()
        })?;
    }
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn finish_ends_lease<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    ensure(session.finish().await?, || {
        "Finish with a lease in force was answered 'not valid'".to_owned()
    })?;
    let mut session = Session::open(context, &store).await?;
    session.take_lease().await?;
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn finish_without_lease<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let session = Session::open_fresh(context, &store).await?;
    ensure(!session.finish().await?, || {
        "Finish without a lease was answered 'valid'".to_owned()
    })?;
    Ok(Verdict::Passed)
}

pub(super) async fn second_stream_supersedes<C: ClusterClient>(
    context: &Context<'_, C>,
) -> Outcome {
    let store = context.store().await?;
    let mut first = Session::open_fresh(context, &store).await?;
    first.take_lease().await?;
    let mut second = Session::open(context, &store).await?;
    first.expect_end(FailureKind::Superseded).await?;
    ensure(second.lease().await?, || {
        "the lease did not survive the end of the first stream".to_owned()
    })?;
    // Also a stream on which nothing was answered yet. That it has arrived shows
    // at the one before.
    let mut third = Session::open(context, &store).await?;
    second.expect_end(FailureKind::Superseded).await?;
    let mut fourth = Session::open(context, &store).await?;
    third.expect_end(FailureKind::Superseded).await?;
    ensure(fourth.lease().await?, || {
        "the lease did not survive the end of the third stream".to_owned()
    })?;
    fourth.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn dropped_stream_keeps_lease<C: ClusterClient>(
    context: &Context<'_, C>,
) -> Outcome {
    let store = context.store().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    drop(session);
    let mut session = Session::open(context, &store).await?;
    ensure(session.lease().await?, || {
        "the lease of a stream that was dropped was not in force any more".to_owned()
    })?;
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn dropped_sender_cancels<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let store = context.store().await?;
    let mut session = Session::open_fresh(context, &store).await?;
    session.take_lease().await?;
    let mut receiver = session.drop_sender();
    match receiver.next().await {
        Err(failure) => ensure(failure.kind == FailureKind::Cancelled, || {
            format!(
                "a stream that is closed without Finish ended as {:?}: {failure}",
                failure.kind
            )
        })?,
        Ok(answers) => {
            return Err(format!(
                "a stream that is closed without Finish went on: {answers:?}"
            ));
        }
    }
    let mut session = Session::open(context, &store).await?;
    ensure(session.lease().await?, || {
        "the lease of a stream that was closed was not in force any more".to_owned()
    })?;
    session.end().await?;
    Ok(Verdict::Passed)
}

pub(super) async fn streams_on_all_stores<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let stores = context.participants().await?;
    if stores.len() < 2 {
        return Ok(Verdict::Skipped("there is one store only"));
    }
    let mut sessions = Vec::new();
    for store in &stores {
        sessions.push(Session::open_fresh(context, store).await?);
    }
    for session in &mut sessions {
        session.take_lease().await?;
    }
    for session in &mut sessions {
        ensure(session.lease().await?, || {
            "a renewal in time was answered 'not valid'".to_owned()
        })?;
    }
    for session in sessions {
        ensure(session.finish().await?, || {
            "Finish with a lease in force was answered 'not valid'".to_owned()
        })?;
    }
    Ok(Verdict::Passed)
}
