//! What goes wrong in the model goes wrong on the wire.
#![cfg(all(feature = "sim", feature = "tikv"))]

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use futures_util::stream;
use snapshot_prepare::pb::backup::backup_client::BackupClient;
use snapshot_prepare::pb::backup::{
    CheckAdminRequest, PrepareSnapshotBackupRequest, PrepareSnapshotBackupResponse,
};
use snapshot_prepare::pb::metapb;
use snapshot_prepare::pb::pdpb::pd_client::PdClient;
use snapshot_prepare::pb::pdpb::{GetAllStoresRequest, RequestHeader};
use snapshot_prepare::sim::fault::{FaultKind, FaultPlan};
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn patiently<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("hangs")
}

/// Serves a cluster that one kind of fault strikes again and again for a while.
async fn serve_with(kind: FaultKind, stores: u32) -> Served {
    let mut plan = FaultPlan::none().with(kind, 40);
    plan.warm_up = Duration::ZERO;
    plan.stop_after = Duration::from_secs(3);
    plan.longest = Duration::from_millis(300);
    let layout = Layout::generate(stores, 6, stores, 1);
    Served::start(&layout, plan, 5, ([127, 0, 0, 1], 0).into())
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

struct Leased {
    requests: mpsc::UnboundedSender<PrepareSnapshotBackupRequest>,
    answers: Streaming<PrepareSnapshotBackupResponse>,
    was_valid: bool,
}

/// Opens a stream and takes a lease.
async fn lease(channel: &Channel) -> Result<Leased, Status> {
    let (requests, mut queue) = mpsc::unbounded_channel();
    let request = PrepareSnapshotBackupRequest {
        lease_in_seconds: 60,
        ..PrepareSnapshotBackupRequest::default()
    };
    requests.send(request).expect("open");
    let mut client = BackupClient::new(channel.clone());
    let call = client.prepare_snapshot_backup(stream::poll_fn(move |cx| queue.poll_recv(cx)));
    let mut answers = patiently(call).await?.into_inner();
    let first = patiently(answers.message()).await?;
    Ok(Leased {
        requests,
        answers,
        was_valid: first.expect("an answer").last_lease_is_valid,
    })
}

/// Takes a lease as soon as that is possible.
async fn lease_again(address: &str) -> Leased {
    let again = async {
        loop {
            match lease(&dial(address).await).await {
                Ok(leased) => return leased,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    patiently(again).await
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_without_a_word_and_leaves_its_lease() {
    let served = serve_with(FaultKind::StreamCut, 1).await;
    let address = served.stores()[0].address.clone();
    let mut leased = lease_again(&address).await;
    let status = patiently(leased.answers.message()).await;
    let status = status.expect_err("cut");
    assert!(status.source().is_some(), "the server spoke: {status:?}");
    drop(leased.requests);
    assert!(lease_again(&address).await.was_valid);
    served.shutdown().await;
}

#[tokio::test]
async fn a_store_that_restarts_takes_its_connections_and_its_lease() {
    let served = serve_with(FaultKind::StoreRestart, 1).await;
    let address = served.stores()[0].address.clone();
    let mut leased = lease_again(&address).await;
    let status = patiently(leased.answers.message()).await;
    let status = status.expect_err("gone");
    assert!(status.source().is_some(), "the server spoke: {status:?}");
    assert!(!lease_again(&address).await.was_valid, "forgotten");
    served.shutdown().await;
}

#[tokio::test]
async fn a_store_that_is_gone_is_unavailable() {
    let served = serve_with(FaultKind::StoreGone, 1).await;
    let channel = dial(&served.stores()[0].address).await;
    let gone = async {
        loop {
            let mut client = BackupClient::new(channel.clone());
            match client.check_pending_admin_op(CheckAdminRequest {}).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                // Where it broke off in the middle of a call, there is no code
                // of the server's.
                Err(status) if status.source().is_some() => {}
                Err(status) => return status,
            }
        }
    };
    assert_eq!(patiently(gone).await.code(), Code::Unavailable);
    served.shutdown().await;
}

async fn list(served: &Served) -> Vec<metapb::Store> {
    let mut client = PdClient::new(dial(&served.pd_endpoint()).await);
    let answer = client.get_all_stores(GetAllStoresRequest {
        header: Some(RequestHeader {
            cluster_id: served.cluster_id(),
            ..RequestHeader::default()
        }),
        exclude_tombstone_stores: true,
    });
    patiently(answer)
        .await
        .expect("answered")
        .into_inner()
        .stores
}

#[tokio::test]
async fn a_store_that_joins_listens() {
    let served = serve_with(FaultKind::NewStore, 3).await;
    let joined = async {
        loop {
            match list(&served).await {
                stores if stores.len() > 3 => return stores,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    for store in patiently(joined).await {
        let leased = lease_again(&store.address).await;
        assert!(!leased.was_valid, "store {}", store.id);
    }
    served.shutdown().await;
}
