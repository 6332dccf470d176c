//! A small cluster for the tests of the driver: it behaves, unless a test tells
//! a store not to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, ReadTarget, Region, RegionEpoch, RegionId,
    ScannedRegion, Store, StoreId, WaitAnswer, WaitTarget,
};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;

const EPOCH: RegionEpoch = RegionEpoch {
    conf_ver: 3,
    version: 7,
};

/// How a store treats a part of what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mood {
    /// As it should.
    #[default]
    Good,
    /// Never comes to an end.
    Hangs,
    /// Says no.
    Fails,
    /// The client's code panics.
    Panics,
    /// Says the same again and again, without an end.
    Babbles,
}

/// What a test can change about a store, and see of it.
#[derive(Debug, Default)]
pub(crate) struct FakeStore {
    pub(crate) dial: Mood,
    pub(crate) listing: Mood,
    pub(crate) reads: Mood,
    pub(crate) send: Mood,
    /// Waits are read and never answered.
    pub(crate) swallow_waits: bool,
    /// Lease requests, the first one apart, are read and never answered.
    pub(crate) swallow_renewals: bool,
    /// The next so many read calls answer one region too few.
    pub(crate) short_reads: usize,
    /// Sends need a permit of this, when there is one.
    pub(crate) gate: Option<Arc<Semaphore>>,
    /// What arrived on all its streams, in order.
    pub(crate) seen: Vec<StreamRequest>,
    /// Dials begun.
    pub(crate) dials: usize,
    /// Listings begun.
    pub(crate) listings: usize,
    leased_until: Option<Instant>,
    stream: Option<mpsc::UnboundedSender<Result<StreamAnswer, Failure>>>,
}

impl FakeStore {
    pub(crate) fn is_suspended(&self) -> bool {
        self.leased_until
            .is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn renewals(&self) -> usize {
        self.count(|request| matches!(request, StreamRequest::UpdateLease { .. }))
    }

    pub(crate) fn finishes(&self) -> usize {
        self.count(|request| *request == StreamRequest::Finish)
    }

    fn count(&self, wanted: impl Fn(&StreamRequest) -> bool) -> usize {
        self.seen.iter().filter(|request| wanted(request)).count()
    }

    fn take(&mut self, request: StreamRequest) {
        self.seen.push(request.clone());
        match request {
            StreamRequest::UpdateLease { seconds } => {
                let last_lease_is_valid = self.is_suspended();
                self.leased_until = Some(Instant::now() + Duration::from_secs(seconds));
                if !(self.swallow_renewals && last_lease_is_valid) {
                    self.answer(Ok(StreamAnswer::LeaseUpdated {
                        last_lease_is_valid,
                    }));
                }
            }
            StreamRequest::WaitApply { regions } => {
                for target in regions {
                    if !self.swallow_waits {
                        self.answer(Ok(confirmed(target)));
                    }
                }
            }
            StreamRequest::Finish => {
                let last_lease_is_valid = self.is_suspended();
                self.leased_until = None;
                let stream = self.stream.take();
                tokio::spawn(async move {
                    // Whoever closes the request side meanwhile spoils it.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if let Some(stream) = stream {
                        let _ = stream.send(Ok(StreamAnswer::LeaseUpdated {
                            last_lease_is_valid,
                        }));
                        let _ = stream.send(Err(failure(FailureKind::Finished)));
                    }
                });
            }
        }
    }

    /// Answers a lease request that nobody made.
    pub(crate) fn babble(&self) {
        self.answer(Ok(StreamAnswer::LeaseUpdated {
            last_lease_is_valid: true,
        }));
    }

    fn answer(&self, answer: Result<StreamAnswer, Failure>) {
        if let Some(stream) = &self.stream {
            let _ = stream.send(answer);
        }
    }

    /// Ends the present stream.
    pub(crate) fn end(&mut self, kind: FailureKind) {
        self.answer(Err(failure(kind)));
        self.stream = None;
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, "ended by the fake store")
}

fn confirmed(target: WaitTarget) -> StreamAnswer {
    StreamAnswer::WaitApplyDone(WaitAnswer {
        target: Some(target),
        result: Ok(()),
    })
}

#[derive(Debug)]
struct State {
    stores: BTreeMap<StoreId, FakeStore>,
    regions: u64,
}

/// The cluster; clones are handles of the same one.
#[derive(Clone, Debug)]
pub(crate) struct FakeCluster {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    /// Calls and dials whose future is alive.
    pub(crate) alive: Arc<AtomicUsize>,
}

/// Counts a future that is alive.
#[derive(Debug)]
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeCluster {
    pub(crate) fn new(stores: u64, regions: u64) -> Self {
        let stores = (1..=stores).map(|id| (StoreId(id), FakeStore::default()));
        Self {
            state: Arc::new(Mutex::new(State {
                stores: stores.collect(),
                regions,
            })),
            changed: Arc::new(Notify::new()),
            alive: Arc::default(),
        }
    }

    /// Looks at a store, or changes it.
    pub(crate) fn store<T>(&self, id: u64, look: impl FnOnce(&mut FakeStore) -> T) -> T {
        let mut state = self.lock();
        let result = look(state.stores.get_mut(&StoreId(id)).expect("a store"));
        drop(state);
        self.changed.notify_waiters();
        result
    }

    /// Returns what `look` says of each store.
    pub(crate) fn each<T>(&self, look: impl FnMut(&FakeStore) -> T) -> Vec<T> {
        self.lock().stores.values().map(look).collect()
    }

    /// Waits until `wanted` holds for every store.
    pub(crate) async fn until_each(&self, mut wanted: impl FnMut(&FakeStore) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.each(&mut wanted).into_iter().all(|is_so| is_so) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no test panics with the lock held")
    }

    fn mood(&self, store: &Store, look: impl FnOnce(&FakeStore) -> Mood) -> Mood {
        look(&self.lock().stores[&store.id])
    }

    fn regions(&self) -> Vec<(Region, StoreId)> {
        let state = self.lock();
        let ids: Vec<_> = state.stores.keys().copied().collect();
        (0..state.regions)
            .map(|index| {
                let peers = ids.iter().map(|store| Peer {
                    id: PeerId(index * 100 + store.0),
                    store_id: *store,
                    role: PeerRole::Voter,
                });
                let leader = ids[usize::try_from(index).expect("small") % ids.len()];
                let region = Region {
                    id: RegionId(index + 1),
                    range: range(index, state.regions),
                    epoch: EPOCH,
                    peers: peers.collect(),
                };
                (region, leader)
            })
            .collect()
    }
}

fn range(index: u64, count: u64) -> KeyRange {
    let key = |index: u64| match index {
        0 => Vec::new(),
        index if index == count => Vec::new(),
        index => format!("key{index:06}").into_bytes(),
    };
    KeyRange::from_wire(key(index), key(index + 1)).expect("not empty")
}

/// Waits for ever, fails or panics as the mood is.
async fn suffer(mood: Mood) -> Result<(), Failure> {
    match mood {
        Mood::Good | Mood::Babbles => Ok(()),
        Mood::Hangs => std::future::pending().await,
        Mood::Fails => Err(Failure::new(FailureKind::Unavailable, "in a bad mood")),
        Mood::Panics => panic!("the fake client panics on purpose"),
    }
}

impl ClusterClient for FakeCluster {
    type Claims = Listing<Claim>;
    type Reads = Listing<ReadAnswer>;
    type Sender = FakeSender;
    type Receiver = FakeReceiver;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        let state = self.lock();
        Ok(state
            .stores
            .keys()
            .map(|id| Store {
                id: *id,
                address: format!("store-{id}:20160"),
                version: "8.5.2".to_owned(),
                ..Store::default()
            })
            .collect())
    }

    async fn scan_regions(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> Result<Vec<ScannedRegion>, Failure> {
        Ok(self
            .regions()
            .into_iter()
            .filter(|(region, _)| region.range.overlaps(&range))
            .take(usize::try_from(limit).expect("small"))
            .map(|(region, leader)| ScannedRegion {
                region,
                leader: Some(leader),
            })
            .collect())
    }

    async fn list_claims(&self, store: &Store) -> Result<Listing<Claim>, Failure> {
        let alive = Alive::new(&self.alive);
        self.store(store.id.0, |store| store.listings += 1);
        let mood = self.mood(store, |store| store.listing);
        if mood == Mood::Panics {
            suffer(mood).await?;
        }
        let claims = self
            .regions()
            .into_iter()
            .filter(|(_, leader)| *leader == store.id)
            .map(|(region, _)| Claim {
                region,
                has_pending_admin: false,
            });
        Ok(Listing {
            left: claims.collect(),
            end: mood,
            _alive: alive,
        })
    }

    async fn leader_reads(
        &self,
        store: &Store,
        targets: Vec<ReadTarget>,
    ) -> Result<Listing<ReadAnswer>, Failure> {
        let alive = Alive::new(&self.alive);
        suffer(self.mood(store, |store| store.reads)).await?;
        let missing = self.store(store.id.0, |store| {
            let missing = store.short_reads.min(1);
            store.short_reads -= missing;
            missing
        });
        let answers = targets.into_iter().skip(missing).map(|target| ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result: Ok(()),
        });
        Ok(Listing {
            left: answers.collect(),
            end: Mood::Good,
            _alive: alive,
        })
    }

    async fn open_stream(&self, store: &Store) -> Result<(FakeSender, FakeReceiver), Failure> {
        let _alive = Alive::new(&self.alive);
        self.store(store.id.0, |store| store.dials += 1);
        suffer(self.mood(store, |store| store.dial)).await?;
        let (sender, answers) = mpsc::unbounded_channel();
        self.store(store.id.0, |store| {
            store.end(FailureKind::Superseded);
            store.stream = Some(sender.clone());
        });
        let sender = FakeSender {
            cluster: self.clone(),
            store: store.id.0,
            answers: sender,
        };
        Ok((sender, FakeReceiver(answers)))
    }
}

/// A listing of which 64 items come at a time.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    left: Vec<T>,
    end: Mood,
    _alive: Alive,
}

impl<T: Clone + Send + Sync + 'static> Batches<T> for Listing<T> {
    async fn next(&mut self) -> Option<Result<Vec<T>, Failure>> {
        if self.left.is_empty() {
            return suffer(self.end).await.err().map(Err);
        }
        if self.end == Mood::Babbles {
            tokio::time::sleep(Duration::from_millis(1)).await;
            return Some(Ok(self.left.clone()));
        }
        let count = self.left.len().min(64);
        Some(Ok(self.left.drain(..count).collect()))
    }
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct FakeSender {
    cluster: FakeCluster,
    store: u64,
    answers: mpsc::UnboundedSender<Result<StreamAnswer, Failure>>,
}

impl PrepareSender for FakeSender {
    async fn send(&mut self, request: StreamRequest) -> Result<(), Failure> {
        if let Some(gate) = self.cluster.store(self.store, |store| store.gate.clone()) {
            gate.acquire().await.expect("never closed").forget();
        }
        suffer(self.cluster.store(self.store, |store| store.send)).await?;
        self.cluster.store(self.store, |store| {
            let is_present = store
                .stream
                .as_ref()
                .is_some_and(|stream| stream.same_channel(&self.answers));
            if !is_present {
                return Err(Failure::new(FailureKind::Transport, "the stream is over"));
            }
            store.take(request);
            Ok(())
        })
    }
}

impl Drop for FakeSender {
    /// A request side that closes makes a store cancel the stream.
    fn drop(&mut self) {
        let closed = Failure::new(FailureKind::Cancelled, "the request side was closed");
        let _ = self.answers.send(Err(closed));
    }
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct FakeReceiver(mpsc::UnboundedReceiver<Result<StreamAnswer, Failure>>);

impl PrepareReceiver for FakeReceiver {
    async fn next(&mut self) -> Result<Vec<StreamAnswer>, Failure> {
        match self.0.recv().await {
            Some(answer) => answer.map(|answer| vec![answer]),
            None => Err(Failure::new(FailureKind::Transport, "no more senders")),
        }
    }
}
