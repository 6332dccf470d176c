//! The conformance suite finds out clients that are not what they should be.
#![cfg(feature = "sim")]

use std::time::Duration;

use snapshot_prepare::cluster::conformance::{Check, Expectation};
use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::{Claim, ReadAnswer, ReadTarget, ScannedRegion, Store};
use snapshot_prepare::sim::client::{SimClaims, SimCluster, SimReads, SimReceiver, SimSender};
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;

/// What a client does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    StoreListedTwice,
    ScanIgnoresLimit,
    ScanLosesFirst,
    ScanLosesLast,
    ScanGoesOnePast,
    ClaimLost,
    ClaimTwice,
    EmptyBatch,
    LeaseAlwaysValid,
    LeaseNeverValid,
    AnswerLostWhenDropped,
    WaitLost,
    WaitTwice,
    WaitWithoutTarget,
    WaitOtherEpoch,
    WaitAlwaysGood,
    EndSaysNothing,
    SenderNeverCloses,
    ReadAlwaysServed,
    ReadLost,
    ReadTwice,
}

/// A simulated cluster behind a client with a flaw.
struct Flawed {
    inner: SimCluster,
    flaw: Flaw,
}

struct Listing<T> {
    inner: T,
    flaw: Flaw,
    first: bool,
}

struct Sender {
    inner: Option<SimSender>,
    flaw: Flaw,
}

struct Receiver {
    inner: SimReceiver,
    flaw: Flaw,
    first: bool,
}

impl ClusterClient for Flawed {
    type Claims = Listing<SimClaims>;
    type Reads = Listing<SimReads>;
    type Sender = Sender;
    type Receiver = Receiver;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        let mut stores = self.inner.list_stores().await?;
        if self.flaw == Flaw::StoreListedTwice {
            stores.push(stores[0].clone());
        }
        Ok(stores)
    }

    async fn scan_regions(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> Result<Vec<ScannedRegion>, Failure> {
        let longer = match self.flaw {
            Flaw::ScanIgnoresLimit => limit + 1,
            _ => limit,
        };
        let mut page = self.inner.scan_regions(range.clone(), longer).await?;
        match self.flaw {
            Flaw::ScanLosesFirst if page[0].region.range.start() != range.start() => {
                page.remove(0);
            }
            Flaw::ScanLosesLast if page.len() < limit as usize => {
                page.pop();
            }
            Flaw::ScanGoesOnePast => {
                if let Some(end) = range.end().as_key() {
                    let rest = KeyRange::new(end.clone(), KeyRange::whole().end().clone());
                    let rest = rest.expect("not empty");
                    page.extend(self.inner.scan_regions(rest, 1).await?);
                }
            }
            _ => {}
        }
        Ok(page)
    }

    async fn list_claims(&self, store: &Store) -> Result<Self::Claims, Failure> {
        let inner = self.inner.list_claims(store).await?;
        Ok(self.listing(inner))
    }

    async fn leader_reads(
        &self,
        store: &Store,
        targets: Vec<ReadTarget>,
    ) -> Result<Self::Reads, Failure> {
        let inner = self.inner.leader_reads(store, targets).await?;
        Ok(self.listing(inner))
    }

    async fn open_stream(&self, store: &Store) -> Result<(Sender, Receiver), Failure> {
        let (sender, receiver) = self.inner.open_stream(store).await?;
        let sender = Sender {
            inner: Some(sender),
            flaw: self.flaw,
        };
        let receiver = Receiver {
            inner: receiver,
            flaw: self.flaw,
            first: true,
        };
        Ok((sender, receiver))
    }
}

impl Flawed {
    fn listing<T>(&self, inner: T) -> Listing<T> {
        Listing {
            inner,
            flaw: self.flaw,
            first: true,
        }
    }
}

impl Batches<Claim> for Listing<SimClaims> {
    async fn next(&mut self) -> Option<Result<Vec<Claim>, Failure>> {
        let first = std::mem::take(&mut self.first);
        if first && self.flaw == Flaw::EmptyBatch {
            return Some(Ok(Vec::new()));
        }
        let mut batch = self.inner.next().await?;
        if let (true, Ok(claims)) = (first, &mut batch) {
            match self.flaw {
                Flaw::ClaimLost => drop(claims.pop()),
                Flaw::ClaimTwice => claims.push(claims[0].clone()),
                _ => {}
            }
        }
        Some(batch)
    }
}

impl Batches<ReadAnswer> for Listing<SimReads> {
    async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        let first = std::mem::take(&mut self.first);
        let mut batch = self.inner.next().await?;
        if let Ok(answers) = &mut batch {
            match self.flaw {
                Flaw::ReadLost if first => drop(answers.pop()),
                Flaw::ReadTwice if first => answers.push(answers[0].clone()),
                Flaw::ReadAlwaysServed => answers.iter_mut().for_each(|a| a.result = Ok(())),
                _ => {}
            }
        }
        Some(batch)
    }
}

impl PrepareSender for Sender {
    async fn send(&mut self, request: StreamRequest) -> Result<(), Failure> {
        self.inner.as_mut().expect("there").send(request).await
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.flaw == Flaw::SenderNeverCloses {
            std::mem::forget(self.inner.take());
        }
    }
}

impl PrepareReceiver for Receiver {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        if self.flaw == Flaw::AnswerLostWhenDropped {
            let answers = self.inner.next().await?;
            // Whoever drops the future here loses the answers.
            tokio::task::yield_now().await;
            return Ok(answers);
        }
        let mut answers = self.inner.next().await.map_err(|mut failure| {
            if self.flaw == Flaw::EndSaysNothing {
                failure.kind = FailureKind::Other;
            }
            failure
        })?;
        self.spoil(&mut answers);
        if answers.is_empty() {
            // All that came is lost.
            std::future::pending::<()>().await;
        }
        Ok(answers)
    }
}

impl Receiver {
    fn spoil(&mut self, answers: &mut Vec<StreamAnswer>) {
        let is_wait = |answer: &StreamAnswer| matches!(answer, StreamAnswer::WaitApplyDone(_));
        let wait = answers.iter().position(is_wait);
        match (self.flaw, wait) {
            (Flaw::WaitLost, Some(at)) if std::mem::take(&mut self.first) => {
                answers.remove(at);
            }
            (Flaw::WaitTwice, Some(at)) => answers.insert(at, answers[at].clone()),
            _ => {}
        }
        for answer in answers {
            match answer {
                StreamAnswer::LeaseUpdated {
                    last_lease_is_valid,
                } => match self.flaw {
                    Flaw::LeaseAlwaysValid => *last_lease_is_valid = true,
                    Flaw::LeaseNeverValid => *last_lease_is_valid = false,
                    _ => {}
                },
                StreamAnswer::WaitApplyDone(answer) => match self.flaw {
                    Flaw::WaitWithoutTarget => answer.target = None,
                    Flaw::WaitAlwaysGood => answer.result = Ok(()),
                    Flaw::WaitOtherEpoch => {
                        if let Some(target) = &mut answer.target {
                            target.epoch.version += 1;
                        }
                    }
                    _ => {}
                },
            }
        }
    }
}

/// Runs a check against a client with a flaw; returns whether it fails or
/// hangs.
async fn is_found_out(flaw: Flaw, check: Check) -> bool {
    let layout = Layout::generate(3, 40, 2, 1);
    let client = Flawed {
        inner: SimCluster::start(&layout, FaultPlan::none(), 1),
        flaw,
    };
    let expected = Expectation {
        stores: layout.stores.iter().map(|store| store.id).collect(),
        regions: 40,
        store: layout.stores[1].id,
    };
    let patience = Duration::from_secs(600);
    match tokio::time::timeout(patience, check.run(&client, &expected)).await {
        Ok(verdict) => verdict.is_err(),
        Err(_) => true,
    }
}

#[tokio::test(start_paused = true)]
async fn each_flaw_is_found_by_its_check() {
    for (flaw, check) in [
        (Flaw::StoreListedTwice, Check::ListStores),
        (Flaw::ScanIgnoresLimit, Check::ScanLimit),
        (Flaw::ScanLosesFirst, Check::ScanRange),
        (Flaw::ScanLosesLast, Check::ScanTiles),
        (Flaw::ScanLosesLast, Check::ScanPages),
        (Flaw::ScanGoesOnePast, Check::ScanRange),
        (Flaw::ClaimLost, Check::ClaimsTile),
        (Flaw::ClaimTwice, Check::ClaimsTile),
        (Flaw::EmptyBatch, Check::ClaimsDropped),
        (Flaw::LeaseAlwaysValid, Check::LeaseFirstThenRenewed),
        (Flaw::LeaseAlwaysValid, Check::FinishWithoutLease),
        (Flaw::LeaseNeverValid, Check::LeaseFirstThenRenewed),
        (Flaw::LeaseNeverValid, Check::FinishEndsLease),
        (Flaw::LeaseNeverValid, Check::DroppedStreamKeepsLease),
        (Flaw::LeaseNeverValid, Check::StreamsOnAllStores),
        (Flaw::LeaseAlwaysValid, Check::WaitBetweenRenewals),
        (Flaw::AnswerLostWhenDropped, Check::LeaseAnswerKept),
        (Flaw::WaitLost, Check::WaitAnsweredOnce),
        (Flaw::WaitTwice, Check::WaitAnsweredOnce),
        (Flaw::WaitWithoutTarget, Check::WaitAnsweredOnce),
        (Flaw::WaitOtherEpoch, Check::WaitAnsweredOnce),
        (Flaw::WaitAlwaysGood, Check::WaitUnknownRegion),
        (Flaw::WaitAlwaysGood, Check::WaitWrongEpoch),
        (Flaw::EndSaysNothing, Check::WaitWithoutLease),
        (Flaw::EndSaysNothing, Check::FinishEndsLease),
        (Flaw::EndSaysNothing, Check::SecondStreamSupersedes),
        (Flaw::EndSaysNothing, Check::DroppedSenderCancels),
        (Flaw::SenderNeverCloses, Check::DroppedSenderCancels),
        (Flaw::ReadAlwaysServed, Check::ReadElsewhere),
        (Flaw::ReadAlwaysServed, Check::ReadWrongEpoch),
        (Flaw::ReadAlwaysServed, Check::ReadWrongTarget),
        (Flaw::ReadLost, Check::ReadAtLeader),
        (Flaw::ReadTwice, Check::ReadAtLeader),
    ] {
        assert!(!is_found_out(Flaw::None, check).await, "{check}");
        assert!(is_found_out(flaw, check).await, "{check} misses {flaw:?}");
    }
}
