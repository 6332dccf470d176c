//! What the simulated cluster puts on the wire, seen by raw gRPC clients.
#![cfg(all(feature = "sim", feature = "tikv"))]

mod reads;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream;
use snapshot_prepare::pb::backup::backup_client::BackupClient;
use snapshot_prepare::pb::backup::{
    CheckAdminRequest, CheckAdminResponse, PrepareSnapshotBackupRequest,
    PrepareSnapshotBackupRequestType as Ask, PrepareSnapshotBackupResponse,
};
use snapshot_prepare::pb::pdpb::pd_client::PdClient;
use snapshot_prepare::pb::pdpb::{self, RequestHeader};
use snapshot_prepare::pb::{errorpb, metapb};
use snapshot_prepare::region::{Region, StoreId};
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

async fn patiently<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("hangs")
}

async fn serve(layout: &Layout) -> Served {
    Served::start(layout, FaultPlan::none(), 11, ([127, 0, 0, 1], 0).into())
        .await
        .expect("free ports")
}

async fn dial(address: &str) -> Channel {
    Channel::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect()
        .await
        .expect("listens")
}

async fn dial_store(served: &Served, id: u64) -> Channel {
    let stores = served.stores();
    let store = stores.iter().find(|store| store.id == StoreId(id));
    dial(&store.expect("listed").address).await
}

/// Returns the regions that a store leads.
fn led_by(layout: &Layout, store: u64) -> Vec<Region> {
    let led = layout
        .regions
        .iter()
        .filter(|entry| entry.leader == Some(StoreId(store)));
    led.map(|entry| entry.region.clone()).collect()
}

fn wire_region(region: &Region) -> metapb::Region {
    metapb::Region {
        id: region.id.0,
        region_epoch: Some(wire_epoch(region)),
        ..metapb::Region::default()
    }
}

fn wire_epoch(region: &Region) -> metapb::RegionEpoch {
    metapb::RegionEpoch {
        conf_ver: region.epoch.conf_ver,
        version: region.epoch.version,
    }
}

fn lease(seconds: u64) -> PrepareSnapshotBackupRequest {
    PrepareSnapshotBackupRequest {
        ty: Ask::UpdateLease.into(),
        lease_in_seconds: seconds,
        ..PrepareSnapshotBackupRequest::default()
    }
}

fn wait(regions: Vec<metapb::Region>) -> PrepareSnapshotBackupRequest {
    PrepareSnapshotBackupRequest {
        ty: Ask::WaitApply.into(),
        regions,
        ..PrepareSnapshotBackupRequest::default()
    }
}

fn finish() -> PrepareSnapshotBackupRequest {
    PrepareSnapshotBackupRequest {
        ty: Ask::Finish.into(),
        ..PrepareSnapshotBackupRequest::default()
    }
}

type Answers = Streaming<PrepareSnapshotBackupResponse>;
type Calling = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

/// A prepare stream whose call was issued and is not awaited yet.
struct Prepare {
    requests: mpsc::UnboundedSender<PrepareSnapshotBackupRequest>,
    call: Calling,
}

impl Prepare {
    /// Issues the call and gives it time to arrive.
    async fn issue(channel: &Channel) -> Self {
        let (requests, mut queue) = mpsc::unbounded_channel();
        let mut client = BackupClient::new(channel.clone());
        let requests_stream = stream::poll_fn(move |cx| queue.poll_recv(cx));
        let call: Calling =
            Box::pin(async move { client.prepare_snapshot_backup(requests_stream).await });
        let mut prepare = Self { requests, call };
        for _ in 0..10 {
            assert!(!prepare.is_answered().await, "headers came by themselves");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        prepare
    }

    /// Polls the call once.
    async fn is_answered(&mut self) -> bool {
        let call = &mut self.call;
        poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await
    }

    fn send(&self, request: PrepareSnapshotBackupRequest) {
        self.requests.send(request).expect("the call is open");
    }

    async fn headers(&mut self) -> Result<Response<Answers>, Status> {
        patiently(self.call.as_mut()).await
    }

    async fn refused(mut self) -> Status {
        self.headers().await.expect_err("no headers of its own")
    }
}

async fn next(answers: &mut Answers) -> PrepareSnapshotBackupResponse {
    let answer = patiently(answers.message()).await;
    answer.expect("no failure").expect("goes on")
}

#[tokio::test]
async fn headers_come_with_the_first_answer() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let mut prepare = Prepare::issue(&channel).await;
    prepare.send(lease(60));
    let response = prepare.headers().await.expect("headers");
    let header = |name: &str| response.metadata().get(name).cloned();
    assert_eq!(
        header("content-type").expect("is there"),
        "application/grpc"
    );
    let mut answers = response.into_inner();
    let first = next(&mut answers).await;
    // The first lease: type 1, and nothing else on the wire.
    let expected = PrepareSnapshotBackupResponse {
        ty: 1,
        ..PrepareSnapshotBackupResponse::default()
    };
    assert_eq!(first, expected);
    served.shutdown().await;
}

#[tokio::test]
async fn a_first_failure_comes_without_headers() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let region = wire_region(&led_by(&layout, 1)[0]);

    let prepare = Prepare::issue(&channel).await;
    prepare.send(wait(vec![region]));
    let status = prepare.refused().await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(
        status.message(),
        "the lease has expired, you may not send `wait_apply` because it is no meaning"
    );

    // The request side is closed at once.
    let mut prepare = Prepare::issue(&channel).await;
    prepare.requests = mpsc::unbounded_channel().0;
    let status = prepare.refused().await;
    assert_eq!(
        (status.code(), status.message()),
        (Code::Cancelled, "CANCELLED")
    );

    // A type outside of the enum cannot be read.
    let prepare = Prepare::issue(&channel).await;
    prepare.send(PrepareSnapshotBackupRequest {
        ty: 7,
        ..PrepareSnapshotBackupRequest::default()
    });
    let status = prepare.refused().await;
    assert_eq!(
        (status.code(), status.message()),
        (Code::Cancelled, "CANCELLED")
    );

    // A second stream takes over from one that was never answered.
    let first = Prepare::issue(&channel).await;
    let _second = Prepare::issue(&channel).await;
    let status = first.refused().await;
    assert_eq!(status.code(), Code::Cancelled);
    assert_eq!(status.message(), "the loop has been aborted by server");
    served.shutdown().await;
}

#[tokio::test]
async fn after_the_first_answer_the_same_comes_on_the_stream() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;

    let mut prepare = Prepare::issue(&channel).await;
    prepare.send(lease(60));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    next(&mut answers).await;
    drop(prepare);
    let status = patiently(answers.message()).await.expect_err("cancelled");
    assert_eq!(
        (status.code(), status.message()),
        (Code::Cancelled, "CANCELLED")
    );

    let mut prepare = Prepare::issue(&channel).await;
    prepare.send(lease(60));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    assert!(next(&mut answers).await.last_lease_is_valid, "left behind");
    prepare.send(finish());
    prepare.send(lease(60));
    assert!(next(&mut answers).await.last_lease_is_valid);
    let end = patiently(answers.message()).await.expect("status OK");
    assert_eq!(end, None, "nothing is served after Finish");
    patiently(prepare.requests.closed()).await;
    served.shutdown().await;
}

#[tokio::test]
async fn waits_are_echoed_as_they_were_sent() {
    let layout = Layout::generate(3, 30, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 2).await;
    let led = led_by(&layout, 2);
    let mut prepare = Prepare::issue(&channel).await;
    prepare.send(lease(60));
    let odd = metapb::Region {
        start_key: b"ZZZ".to_vec(),
        end_key: b"AAA".to_vec(),
        peers: vec![metapb::Peer {
            id: 4711,
            store_id: 12,
            role: 9,
            is_witness: true,
        }],
        ..wire_region(&led[0])
    };
    let unknown = metapb::Region {
        id: 987_654,
        ..metapb::Region::default()
    };
    let mut wrong = wire_region(&led[1]);
    wrong.region_epoch = None;
    prepare.send(wait(vec![odd.clone(), unknown.clone(), wrong.clone()]));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    next(&mut answers).await;
    for _ in 0..3 {
        let answer = next(&mut answers).await;
        let echo = answer.region.expect("an echo");
        assert_eq!((answer.ty, answer.last_lease_is_valid), (0, false));
        match answer.error {
            None => assert_eq!(echo, odd),
            Some(error) if error.region_not_found.is_some() => {
                assert_eq!(echo, unknown);
                assert_eq!(error.message, "region 987654 not found");
                let detail = errorpb::RegionNotFound { region_id: 987_654 };
                assert_eq!(error.region_not_found, Some(detail));
            }
            Some(error) => {
                assert_eq!(echo, wrong);
                assert!(error.message.starts_with("wait apply has been aborted, perhaps epoch not match or leadership changed, note = Some(EpochNotMatch("), "{}", error.message);
                let current = error
                    .epoch_not_match
                    .expect("an epoch error")
                    .current_regions;
                assert_eq!(current.len(), 1);
                assert_eq!(current[0].id, led[1].id.0);
                assert_eq!(current[0].region_epoch, Some(wire_epoch(&led[1])));
                assert_eq!(current[0].start_key, led[1].range.start().as_bytes());
                assert_eq!(current[0].peers.len(), 3);
            }
        }
    }
    served.shutdown().await;
}

async fn listing(channel: &Channel) -> Result<Vec<CheckAdminResponse>, Status> {
    let mut client = BackupClient::new(channel.clone());
    let call = client.check_pending_admin_op(CheckAdminRequest {});
    let mut answers = patiently(call).await?.into_inner();
    let mut all = Vec::new();
    while let Some(answer) = patiently(answers.message()).await? {
        all.push(answer);
    }
    Ok(all)
}

#[tokio::test]
async fn a_listing_has_a_message_for_each_region() {
    // Two stores, and all leaders on the first one.
    let mut layout = Layout::generate(2, 200, 2, 1);
    for entry in &mut layout.regions {
        entry.leader = Some(StoreId(1));
    }
    let served = serve(&layout).await;
    let claims = listing(&dial_store(&served, 1).await).await.expect("well");
    assert_eq!(claims.len(), 200);
    assert!(claims.iter().all(|claim| claim.error.is_none()));
    assert!(claims.iter().all(|claim| !claim.has_pending_admin));
    let claimed = claims[0].region.as_ref().expect("a region");
    assert_eq!(claimed.peers.len(), 2);
    // Nothing but a good end.
    let claims = listing(&dial_store(&served, 2).await).await.expect("well");
    assert!(claims.is_empty());
    served.shutdown().await;
}

fn header(served: &Served) -> Option<RequestHeader> {
    Some(RequestHeader {
        cluster_id: served.cluster_id(),
        ..RequestHeader::default()
    })
}

#[tokio::test]
async fn only_pds_leader_answers_and_only_its_own_cluster() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let endpoints = served.pd_endpoints();
    assert_eq!(endpoints.len(), 3);
    assert_eq!(endpoints[0], served.pd_endpoint());
    let mut clients = Vec::new();
    for endpoint in &endpoints {
        clients.push(PdClient::new(dial(endpoint).await));
    }
    let list = |header: Option<RequestHeader>| pdpb::GetAllStoresRequest {
        header,
        exclude_tombstone_stores: false,
    };
    for leader in [0, 1, 2, 0] {
        for (nth, client) in clients.iter_mut().enumerate() {
            let members = client.get_members(pdpb::GetMembersRequest::default());
            let members = patiently(members).await.expect("answered").into_inner();
            assert_eq!(members.members.len(), 3);
            let url = &members.leader.expect("a leader").client_urls[0];
            assert_eq!(*url, format!("http://{}", endpoints[leader]));
            let id = members.header.expect("a header").cluster_id;
            assert_eq!(id, served.cluster_id());

            let answer = patiently(client.get_all_stores(list(header(&served)))).await;
            if nth == leader {
                assert_eq!(answer.expect("leads").into_inner().stores.len(), 3);
            } else {
                let status = answer.expect_err("does not lead");
                assert_eq!(
                    (status.code(), status.message()),
                    (Code::Unavailable, "not leader")
                );
            }
        }
        let status = patiently(clients[leader].get_all_stores(list(None))).await;
        let status = status.expect_err("a wrong cluster id");
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().starts_with("mismatch cluster id, need "));
        served.move_pd_leader();
    }
    served.shutdown().await;
}

#[tokio::test]
async fn scans_fill_in_the_fields_for_old_and_new_clients() {
    let layout = Layout::generate(3, 50, 3, 1);
    let served = serve(&layout).await;
    let mut client = PdClient::new(dial(&served.pd_endpoint()).await);
    let bounds = |from: usize, to: usize| {
        let start = layout.regions[from]
            .region
            .range
            .start()
            .as_bytes()
            .to_vec();
        let end = layout.regions[to].region.range.end().as_wire().to_vec();
        (start, end)
    };
    // No limit, from the 10th region on.
    let (start_key, _) = bounds(10, 10);
    let scan = client.scan_regions(pdpb::ScanRegionsRequest {
        header: header(&served),
        start_key,
        limit: 0,
        end_key: Vec::new(),
    });
    let page = patiently(scan).await.expect("answered").into_inner();
    assert_eq!(page.regions.len(), 40);
    for ((new, old), leader) in page
        .regions
        .iter()
        .zip(&page.region_metas)
        .zip(&page.leaders)
    {
        assert_eq!(new.region.as_ref(), Some(old));
        assert_eq!(new.leader.as_ref(), Some(leader));
    }

    // Ranges that share a region, which comes once.
    let ranges = |limit: i32, contain_all_key_range: bool| {
        let (start_key, end_key) = bounds(3, 5);
        let within = layout.regions[5].region.range.start().as_bytes().to_vec();
        let (_, later) = bounds(5, 7);
        pdpb::BatchScanRegionsRequest {
            header: header(&served),
            need_buckets: false,
            ranges: vec![
                pdpb::KeyRange { start_key, end_key },
                pdpb::KeyRange {
                    start_key: within,
                    end_key: later,
                },
            ],
            limit,
            contain_all_key_range,
        }
    };
    let expected: Vec<u64> = layout.regions.iter().map(|r| r.region.id.0).collect();
    for (limit, count) in [(0, 5), (5, 5), (4, 4), (3, 3), (1, 1)] {
        let answer = patiently(client.batch_scan_regions(ranges(limit, true))).await;
        let answer = answer.expect("answered").into_inner();
        assert_eq!(answer.header.expect("a header").error, None);
        let ids: Vec<u64> = answer
            .regions
            .iter()
            .map(|r| r.region.as_ref().expect("a region").id)
            .collect();
        assert_eq!(ids, expected[3..3 + count], "limit {limit}");
    }

    let by_id = client.get_region_by_id(pdpb::GetRegionByIdRequest {
        header: header(&served),
        region_id: expected[20],
    });
    let found = patiently(by_id).await.expect("answered").into_inner();
    assert_eq!(found.region.expect("known").id, expected[20]);
    let leader = layout.regions[20].leader.expect("led");
    assert_eq!(found.leader.expect("known").store_id, leader.0);

    let ask = pdpb::GetMinTsRequest {
        header: header(&served),
    };
    let time = patiently(client.get_min_ts(ask)).await.expect("answered");
    let time = time.into_inner().timestamp.expect("a timestamp");
    assert!(time.physical > 1_500_000_000_000, "{time:?}");
    served.shutdown().await;
}

#[tokio::test]
async fn tombstones_are_listed_when_asked_for_and_do_not_listen() {
    let layout = Layout::from_pd_json_with_stores(
        include_bytes!("../data/regions.json"),
        include_bytes!("../data/stores.json"),
    )
    .expect("sound");
    let served = serve(&layout).await;
    let mut client = PdClient::new(dial(&served.pd_endpoint()).await);
    for (exclude_tombstone_stores, count) in [(false, 5), (true, 4)] {
        let list = client.get_all_stores(pdpb::GetAllStoresRequest {
            header: header(&served),
            exclude_tombstone_stores,
        });
        let stores = patiently(list).await.expect("answered").into_inner().stores;
        assert_eq!(stores.len(), count);
        for store in stores {
            let is_tombstone = store.state == i32::from(metapb::StoreState::Tombstone);
            assert_eq!(store.address.starts_with("127.0.0.1:"), !is_tombstone);
        }
    }
    // TiFlash has no such service.
    let status = listing(&dial_store(&served, 9).await).await;
    assert_eq!(status.expect_err("refused").code(), Code::Unimplemented);
    served.shutdown().await;
}

#[tokio::test]
async fn a_broken_connection_takes_the_stream_but_not_the_lease() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let mut prepare = Prepare::issue(&dial_store(&served, 1).await).await;
    prepare.send(lease(60));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    next(&mut answers).await;
    served.break_connections(StoreId(1));
    let status = patiently(answers.message()).await.expect_err("broken");
    assert!(
        std::error::Error::source(&status).is_some(),
        "no word of the server: {status:?}"
    );
    let mut prepare = Prepare::issue(&dial_store(&served, 1).await).await;
    prepare.send(lease(60));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    assert!(next(&mut answers).await.last_lease_is_valid);
    served.shutdown().await;
}

#[tokio::test]
async fn the_client_follows_pds_leader() {
    use snapshot_prepare::cluster::ClusterClient;
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let endpoints = [served.pd_endpoint()];
    let client = TikvCluster::connect(endpoints, Security::none(), Options::default());
    let client = patiently(client).await.expect("connects");
    for _ in 0..4 {
        served.move_pd_leader();
        let stores = patiently(client.list_stores()).await.expect("follows");
        assert_eq!(stores.len(), 3);
    }
    served.shutdown().await;
}

#[tokio::test]
async fn shutdown_leaves_nothing_behind() {
    let layout = Layout::generate(3, 9, 3, 1);
    let served = serve(&layout).await;
    let pd = served.pd_endpoints();
    let stores: Vec<String> = served.stores().iter().map(|s| s.address.clone()).collect();
    let mut prepare = Prepare::issue(&dial_store(&served, 1).await).await;
    prepare.send(lease(60));
    let mut answers = prepare.headers().await.expect("headers").into_inner();
    next(&mut answers).await;
    patiently(served.shutdown()).await;
    patiently(answers.message()).await.expect_err("broken");
    for address in pd.iter().chain(&stores) {
        // Nobody listens there any more, so that it can be bound again.
        tokio::net::TcpListener::bind(address).await.expect("free");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = taken.local_addr().expect("bound");
    let layout = Layout::generate(1, 1, 1, 1);
    let error = Served::start(&layout, FaultPlan::none(), 1, address).await;
    assert_eq!(
        error.expect_err("taken").kind(),
        std::io::ErrorKind::AddrInUse
    );
}
