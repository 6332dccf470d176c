use std::collections::BTreeMap;

use futures_util::stream::{self, FuturesUnordered, StreamExt};
use snapshot_prepare::pb::backup::backup_client::BackupClient;
use snapshot_prepare::pb::backup::{
    CheckAdminRequest, PrepareSnapshotBackupRequest, PrepareSnapshotBackupRequestType as Type,
    PrepareSnapshotBackupResponse,
};
use snapshot_prepare::pb::kvrpcpb::{BatchGetRequest, Context};
use snapshot_prepare::pb::metapb;
use snapshot_prepare::pb::tikvpb::batch_commands_request::{Request, request};
use snapshot_prepare::pb::tikvpb::batch_commands_response::{Response, response};
use snapshot_prepare::pb::tikvpb::tikv_client::TikvClient;
use snapshot_prepare::pb::tikvpb::{BatchCommandsRequest, BatchCommandsResponse};
use snapshot_prepare::region::{Region, StoreId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use super::{Target, runtime};

/// Leader reads in flight per store, as the whole client has by default.
const READS: usize = 64;
/// The fewest regions in a request, save the last one.
const REQUEST: usize = 64;
/// The window of the connection for calls, as the whole client has by default.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// What it does beside its waits, and how it reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Lists the claims of all stores before and after.
    pub(super) lists: bool,
    /// Puts many reads into a message.
    pub(super) reads_in_messages: bool,
}

/// Panics if an answer is missing or is no success.
pub(super) fn count(target: &Target, manner: Manner) {
    let mut led: BTreeMap<StoreId, Vec<Region>> = BTreeMap::new();
    for entry in &target.layout.regions {
        let leader = entry.leader.expect("all regions have leaders");
        led.entry(leader).or_default().push(entry.region.clone());
    }
    let counted = runtime().block_on(async {
        let mut stores = JoinSet::new();
        for store in &target.stores {
            let regions = led.remove(&store.id).unwrap_or_default();
            let (store_id, window) = (store.id, target.window as usize);
            let address = store.address.clone();
            stores.spawn(async move {
                let mut of_store = Store::dial(store_id, &address).await;
                of_store.list(manner.lists).await;
                let counted = if manner.reads_in_messages {
                    of_store.ask_in_messages(&regions, window).await
                } else {
                    of_store.ask(&regions, window).await
                };
                of_store.list(manner.lists).await;
                of_store.finish().await;
                counted
            });
        }
        stores.join_all().await.into_iter().sum::<usize>()
    });
    assert_eq!(counted, target.layout.regions.len());
}

struct Store {
    id: StoreId,
    calls: Channel,
    requests: mpsc::UnboundedSender<PrepareSnapshotBackupRequest>,
    answers: Streaming<PrepareSnapshotBackupResponse>,
}

impl Store {
    /// Connects twice, as the whole client does, and takes a lease.
    async fn dial(id: StoreId, address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let endpoint = endpoint.tcp_nodelay(true);
        let stream = endpoint.connect().await.expect("the store listens");
        let calls = endpoint.initial_connection_window_size(CONNECTION_WINDOW);
        let calls = calls.connect().await.expect("the store listens");
        let (requests, mut queue) = mpsc::unbounded_channel();
        let lease = PrepareSnapshotBackupRequest {
            ty: Type::UpdateLease.into(),
            lease_in_seconds: 120,
            ..Default::default()
        };
        requests.send(lease).expect("the queue is there");
        let sent = stream::poll_fn(move |cx| queue.poll_recv(cx));
        let answers = BackupClient::new(stream)
            .prepare_snapshot_backup(sent)
            .await;
        let mut store = Self {
            id,
            calls,
            requests,
            answers: answers.expect("the store answers").into_inner(),
        };
        store.next().await;
        store
    }

    async fn next(&mut self) -> PrepareSnapshotBackupResponse {
        let answer = self.answers.message().await.expect("the stream goes on");
        let answer = answer.expect("the stream goes on");
        assert!(answer.error.is_none());
        answer
    }

    /// Lists the claims, unless told not to.
    async fn list(&self, lists: bool) {
        if !lists {
            return;
        }
        let mut client = BackupClient::new(self.calls.clone());
        let claims = client.check_pending_admin_op(CheckAdminRequest {}).await;
        let mut claims = claims.expect("the store answers").into_inner();
        while claims.message().await.expect("it goes on").is_some() {}
    }

    /// Sends a wait and a read for each region, with at most `window` of them
    /// under way, and counts what comes back. As many are read as waits were
    /// answered, whichever those were.
    async fn ask(&mut self, regions: &[Region], window: usize) -> usize {
        let (mut asked, mut confirmed, mut reading, mut read) = (0, 0, 0, 0);
        let mut reads = FuturesUnordered::new();
        while read < regions.len() {
            let most = (regions.len() - asked).min(window - (asked - read));
            if most >= REQUEST.min(regions.len() - asked) && most > 0 {
                self.wait(&regions[asked..asked + most]);
                asked += most;
            }
            while reading < confirmed && reading - read < READS {
                reads.push(get(self.calls.clone(), self.id, &regions[reading]));
                reading += 1;
            }
            tokio::select! {
                answer = self.answers.message() => {
                    let answer = answer.expect("the stream goes on");
                    assert!(answer.expect("the stream goes on").error.is_none());
                    confirmed += 1;
                }
                Some(()) = reads.next() => read += 1,
            }
        }
        read
    }

    /// As [`Store::ask`], with as many reads in a message as are due.
    async fn ask_in_messages(&mut self, regions: &[Region], window: usize) -> usize {
        let (mut asked, mut confirmed, mut reading, mut read) = (0, 0, 0, 0);
        let (messages, mut queue) = mpsc::unbounded_channel();
        let sent = stream::poll_fn(move |cx| queue.poll_recv(cx));
        let mut tikv = TikvClient::new(self.calls.clone());
        // Answered only once there is something to answer.
        let opening = tokio::spawn(async move { tikv.batch_commands(sent).await });
        let mut opening = Some(opening);
        let mut reads: Option<Streaming<BatchCommandsResponse>> = None;
        while read < regions.len() {
            let most = (regions.len() - asked).min(window - (asked - read));
            if most >= REQUEST.min(regions.len() - asked) && most > 0 {
                self.wait(&regions[asked..asked + most]);
                asked += most;
            }
            if confirmed - reading >= REQUEST.min(regions.len() - reading) && confirmed > reading {
                let message = in_message(self.id, &regions[reading..confirmed], reading);
                messages.send(message).expect("the stream is there");
                reading = confirmed;
            }
            tokio::select! {
                answer = self.answers.message() => {
                    let answer = answer.expect("the stream goes on");
                    assert!(answer.expect("the stream goes on").error.is_none());
                    confirmed += 1;
                }
                opened = async { opening.as_mut().expect("not opened").await }, if opening.is_some() => {
                    opening = None;
                    let answers = opened.expect("no panic").expect("the store answers");
                    reads = Some(answers.into_inner());
                }
                answer = async { reads.as_mut().expect("opened").message().await }, if reads.is_some() => {
                    let answer = answer.expect("it goes on").expect("it goes on");
                    read += answer.responses.iter().filter(|answer| is_served(answer)).count();
                }
            }
        }
        read
    }

    fn wait(&self, regions: &[Region]) {
        let wait = PrepareSnapshotBackupRequest {
            ty: Type::WaitApply.into(),
            regions: regions.iter().map(by_epoch).collect(),
            ..Default::default()
        };
        self.requests.send(wait).expect("the stream is there");
    }

    async fn finish(mut self) {
        let finish = PrepareSnapshotBackupRequest {
            ty: Type::Finish.into(),
            ..Default::default()
        };
        self.requests.send(finish).expect("the stream is there");
        assert!(self.next().await.last_lease_is_valid);
    }
}

fn by_epoch(region: &Region) -> metapb::Region {
    metapb::Region {
        id: region.id.0,
        region_epoch: Some(epoch(region)),
        ..Default::default()
    }
}

fn epoch(region: &Region) -> metapb::RegionEpoch {
    metapb::RegionEpoch {
        conf_ver: region.epoch.conf_ver,
        version: region.epoch.version,
    }
}

/// Reads from a region's leader.
async fn get(calls: Channel, store: StoreId, region: &Region) {
    let mut client = TikvClient::new(calls);
    let answer = client.kv_batch_get(read(store, region)).await;
    let answer = answer.expect("it is served").into_inner();
    assert!(answer.region_error.is_none());
}

fn read(store: StoreId, region: &Region) -> BatchGetRequest {
    let peer = region.peer_on(store).expect("it leads");
    BatchGetRequest {
        context: Some(Context {
            region_id: region.id.0,
            region_epoch: Some(epoch(region)),
            peer: Some(metapb::Peer {
                id: peer.id.0,
                store_id: store.0,
                ..Default::default()
            }),
            ..Default::default()
        }),
        version: u64::MAX,
        ..Default::default()
    }
}

fn in_message(store: StoreId, regions: &[Region], first: usize) -> BatchCommandsRequest {
    let read = |region| Request {
        cmd: Some(request::Cmd::BatchGet(read(store, region))),
    };
    BatchCommandsRequest {
        requests: regions.iter().map(read).collect(),
        request_ids: (first as u64..).take(regions.len()).collect(),
    }
}

fn is_served(answer: &Response) -> bool {
    matches!(&answer.cmd, Some(response::Cmd::BatchGet(get)) if get.region_error.is_none())
}
