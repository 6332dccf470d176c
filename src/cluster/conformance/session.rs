use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::context::{Context, ensure, failed};
use crate::cluster::{ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest};
use crate::error::{Failure, FailureKind};
use crate::region::{Store, WaitAnswer, WaitTarget};

/// The lease that checks ask for. It is ended by each check, so that its length
/// does not matter.
pub(super) const LEASE_SECONDS: u64 = 60;

/// A prepare stream with its answers taken apart.
pub(super) struct Session<C: ClusterClient> {
    sender: C::Sender,
    receiver: C::Receiver,
    arrived: VecDeque<StreamAnswer>,
}

impl<C: ClusterClient> Session<C> {
    /// Opens a stream on a store that has no lease.
    pub(super) async fn open_fresh(
        context: &Context<'_, C>,
        store: &Store,
    ) -> Result<Self, String> {
        Self::open(context, store).await?.end().await?;
        Self::open(context, store).await
    }

    pub(super) async fn open(context: &Context<'_, C>, store: &Store) -> Result<Self, String> {
        let opened = context.client.open_stream(store).await;
        let (sender, receiver) = opened.map_err(failed("open_stream"))?;
        Ok(Self {
            sender,
            receiver,
            arrived: VecDeque::new(),
        })
    }

    pub(super) async fn send(&mut self, request: StreamRequest) -> Result<(), String> {
        self.sender
            .send(request)
            .await
            .map_err(failed("sending on the stream"))
    }

    pub(super) async fn send_lease(&mut self) -> Result<(), String> {
        self.send(StreamRequest::UpdateLease {
            seconds: LEASE_SECONDS,
        })
        .await
    }

    pub(super) async fn send_wait(&mut self, regions: Vec<WaitTarget>) -> Result<(), String> {
        self.send(StreamRequest::WaitApply { regions }).await
    }

    /// Returns the next answer.
    pub(super) async fn next(&mut self) -> Result<StreamAnswer, Failure> {
        loop {
            if let Some(answer) = self.arrived.pop_front() {
                return Ok(answer);
            }
            self.arrived.extend(self.receiver.next().await?);
        }
    }

    /// Polls for answers until one poll after the first wake-up, and drops the
    /// future. An answer has to be on its way.
    pub(super) async fn poll_and_drop(&mut self) -> Result<(), String> {
        let mut next = pin!(self.receiver.next());
        let mut woken = false;
        let polled = poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Ready(batch) => Poll::Ready(Some(batch)),
            Poll::Pending if std::mem::replace(&mut woken, true) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        if let Some(batch) = polled.await {
            self.arrived.extend(batch.map_err(failed("the stream"))?);
        }
        Ok(())
    }

    /// Expects the answer to a lease request and returns what it says.
    pub(super) async fn lease_answer(&mut self) -> Result<bool, String> {
        match self.next().await.map_err(failed("the stream"))? {
            StreamAnswer::LeaseUpdated {
                last_lease_is_valid,
            } => Ok(last_lease_is_valid),
            StreamAnswer::WaitApplyDone(answer) => Err(format!(
                "an answer to a wait came instead of one for the lease: {answer:?}"
            )),
        }
    }

    /// Takes or renews the lease and returns whether it was in force before.
    pub(super) async fn lease(&mut self) -> Result<bool, String> {
        self.send_lease().await?;
        self.lease_answer().await
    }

    /// Takes a lease where there is none.
    pub(super) async fn take_lease(&mut self) -> Result<(), String> {
        let valid = self.lease().await?;
        ensure(!valid, || {
            "the first lease on a store without one was answered 'valid'".to_owned()
        })
    }

    /// Waits for regions and returns the answers, as many as regions.
    pub(super) async fn wait(
        &mut self,
        regions: Vec<WaitTarget>,
    ) -> Result<Vec<WaitAnswer>, String> {
        let expected = regions.len();
        self.send_wait(regions).await?;
        let mut answers = Vec::with_capacity(expected);
        while answers.len() < expected {
            match self.next().await.map_err(failed("the stream"))? {
                StreamAnswer::WaitApplyDone(answer) => answers.push(answer),
                StreamAnswer::LeaseUpdated { .. } => {
                    return Err("a lease was answered that was not asked for".to_owned());
                }
            }
        }
        Ok(answers)
    }

    /// Waits for the end of the stream, dropping what comes before.
    pub(super) async fn ended(&mut self) -> Failure {
        loop {
            if let Err(failure) = self.next().await {
                return failure;
            }
        }
    }

    /// Expects that the stream ends, at once, as `kind`.
    pub(super) async fn expect_end(&mut self, kind: FailureKind) -> Result<(), String> {
        match self.next().await {
            Err(failure) if failure.kind == kind => Ok(()),
            Err(failure) => Err(format!(
                "the stream ended as {:?} instead of {kind:?}: {failure}",
                failure.kind
            )),
            Ok(answer) => Err(format!(
                "the stream should have ended as {kind:?}, but went on with {answer:?}"
            )),
        }
    }

    /// Finishes and returns whether the lease was in force.
    pub(super) async fn finish(mut self) -> Result<bool, String> {
        self.send(StreamRequest::Finish).await?;
        let valid = self.lease_answer().await?;
        self.expect_end(FailureKind::Finished).await?;
        Ok(valid)
    }

    /// Finishes, whatever is still to come; leaves a store without a lease.
    pub(super) async fn end(mut self) -> Result<(), String> {
        self.send(StreamRequest::Finish).await?;
        let failure = self.ended().await;
        ensure(failure.kind == FailureKind::Finished, || {
            format!(
                "after Finish the stream ended as {:?}: {failure}",
                failure.kind
            )
        })
    }

    /// Closes the side that sends and keeps the one that receives.
    pub(super) fn drop_sender(self) -> C::Receiver {
        drop(self.sender);
        self.receiver
    }
}
