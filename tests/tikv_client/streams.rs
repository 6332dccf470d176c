//! Prepare streams against a server that holds its headers back, as TiKV does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::pb::backup::{PrepareSnapshotBackupEventType, PrepareSnapshotBackupResponse};
use snapshot_prepare::pb::{errorpb, metapb};
use snapshot_prepare::region::{RegionEpoch, RegionErrorKind, RegionId, WaitAnswer, WaitTarget};
use snapshot_prepare::tikv::{Options, Security, TikvCluster, TikvReceiver, TikvSender};

use crate::fake_pd::FakePd;
use crate::fake_store::claim;
use crate::raw_h2::{Call, RawStore};
use crate::support::{connect, dead_address, soon, store_at};

const LEASE: StreamRequest = StreamRequest::UpdateLease { seconds: 60 };
const PATH: &str = "/backup.Backup/PrepareSnapshotBackup";

async fn cluster() -> TikvCluster {
    connect(FakePd::start().await.url()).await
}

async fn open(cluster: &TikvCluster, store: &mut RawStore) -> (TikvSender, TikvReceiver, Call) {
    let (sender, receiver) = soon(cluster.open_stream(&store.store()))
        .await
        .expect("it opens");
    let call = store.call().await;
    assert_eq!(call.path, PATH);
    (sender, receiver, call)
}

fn lease_answer(last_lease_is_valid: bool) -> PrepareSnapshotBackupResponse {
    PrepareSnapshotBackupResponse {
        ty: PrepareSnapshotBackupEventType::UpdateLeaseResult.into(),
        last_lease_is_valid,
        ..PrepareSnapshotBackupResponse::default()
    }
}

fn target(id: u64) -> WaitTarget {
    WaitTarget {
        region_id: RegionId(id),
        epoch: RegionEpoch {
            conf_ver: 1,
            version: id,
        },
    }
}

async fn ending(receiver: &mut TikvReceiver) -> Failure {
    soon(async {
        loop {
            if let Err(failure) = receiver.next().await {
                return failure;
            }
        }
    })
    .await
}

#[tokio::test]
async fn requests_leave_while_the_store_holds_its_headers_back() {
    let mut store = RawStore::start().await;
    let (mut sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    assert!(receiver.next().now_or_never().is_none());
    soon(sender.send(LEASE)).await.expect("it leaves");
    let request = call.request().await.expect("it comes");
    assert_eq!((request.ty, request.lease_in_seconds), (0, 60));
    assert!(receiver.next().now_or_never().is_none());
    call.answer(&lease_answer(true));
    let answers = soon(receiver.next()).await.expect("an answer");
    let valid = StreamAnswer::LeaseUpdated {
        last_lease_is_valid: true,
    };
    assert_eq!(answers, [valid]);
}

#[tokio::test]
async fn regions_go_out_and_come_back() {
    let mut store = RawStore::start().await;
    let (mut sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    let regions = vec![target(1), target(2)];
    soon(sender.send(StreamRequest::WaitApply { regions }))
        .await
        .expect("it leaves");
    let request = call.request().await.expect("it comes");
    assert_eq!((request.ty, request.regions.len()), (1, 2));
    let busy = errorpb::Error {
        server_is_busy: Some(errorpb::ServerIsBusy {
            reason: String::new(),
            backoff_ms: 70,
        }),
        ..errorpb::Error::default()
    };
    for (region, error) in request.regions.into_iter().zip([None, Some(busy)]) {
        call.answer(&PrepareSnapshotBackupResponse {
            region: Some(region),
            error,
            ..PrepareSnapshotBackupResponse::default()
        });
    }
    let mut answers = Vec::new();
    while answers.len() < 2 {
        answers.extend(soon(receiver.next()).await.expect("answers"));
    }
    let good = WaitAnswer {
        target: Some(target(1)),
        result: Ok(()),
    };
    assert_eq!(answers[0], StreamAnswer::WaitApplyDone(good));
    let StreamAnswer::WaitApplyDone(WaitAnswer {
        target: of,
        result: Err(error),
    }) = &answers[1]
    else {
        panic!("{answers:?}");
    };
    let backoff = Duration::from_millis(70);
    assert_eq!(
        (*of, error.kind),
        (Some(target(2)), RegionErrorKind::ServerIsBusy { backoff })
    );
}

#[tokio::test]
async fn a_request_over_the_limit_is_split() {
    let mut options = Options::default();
    options.max_request_bytes = 100;
    let pd = FakePd::start().await;
    let cluster = soon(TikvCluster::connect([pd.url()], Security::none(), options))
        .await
        .expect("PD is there");
    let mut store = RawStore::start().await;
    let (mut sender, _receiver, mut call) = open(&cluster, &mut store).await;
    let regions: Vec<_> = (1..=50).map(target).collect();
    let send = async {
        soon(sender.send(StreamRequest::WaitApply { regions }))
            .await
            .expect("it leaves");
        soon(sender.send(StreamRequest::WaitApply {
            regions: Vec::new(),
        }))
        .await
        .expect("nothing to send");
        soon(sender.send(LEASE)).await.expect("it leaves");
    };
    let read = async {
        let mut ids = Vec::new();
        loop {
            let request = call.request().await.expect("more");
            if request.ty == 0 {
                return ids;
            }
            assert!(!request.regions.is_empty());
            ids.extend(request.regions.iter().map(|region| region.id));
        }
    };
    let ((), ids) = tokio::join!(send, read);
    assert_eq!(ids, (1..=50).collect::<Vec<_>>());
}

/// The same status in headers alone (the call fails) and after an answer (the
/// stream fails) means the same.
#[tokio::test]
async fn an_ending_means_the_same_wherever_it_shows() {
    let cluster = cluster().await;
    let rows = [
        (0, "", FailureKind::Finished),
        (
            1,
            "the loop has been aborted by server",
            FailureKind::Superseded,
        ),
        (1, "CANCELLED", FailureKind::Cancelled),
        (9, "the lease has expired", FailureKind::LeaseLost),
        (12, "", FailureKind::Unsupported),
        (14, "coprocessor not initialized", FailureKind::Unavailable),
        (16, "Common name check fail", FailureKind::Unauthenticated),
        (2, "anything", FailureKind::Other),
    ];
    for (code, words, kind) in rows {
        for answered in [false, true] {
            let mut store = RawStore::start().await;
            let (mut sender, mut receiver, mut call) = open(&cluster, &mut store).await;
            soon(sender.send(LEASE)).await.expect("it leaves");
            call.request().await.expect("it comes");
            if answered {
                call.answer(&lease_answer(false));
            }
            call.end(code, words);
            let failure = ending(&mut receiver).await;
            assert_eq!(failure.kind, kind, "{code} {words}, answered: {answered}");
            if code != 0 {
                assert!(failure.message.contains(words), "{failure}");
            }
        }
    }
}

#[tokio::test]
async fn what_came_before_the_end_is_handed_over() {
    let mut store = RawStore::start().await;
    let (mut sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    soon(sender.send(StreamRequest::Finish))
        .await
        .expect("it leaves");
    assert_eq!(call.request().await.expect("it comes").ty, 2);
    call.answer(&lease_answer(true));
    call.end(0, "");
    assert_eq!(soon(receiver.next()).await.expect("the answer").len(), 1);
    let failure = soon(receiver.next()).await.expect_err("the end");
    assert_eq!(failure.kind, FailureKind::Finished);
}

#[tokio::test]
async fn a_send_into_an_ended_stream_fails() {
    let mut store = RawStore::start().await;
    let (mut sender, mut receiver, call) = open(&cluster().await, &mut store).await;
    call.end(9, "the lease has expired");
    assert_eq!(ending(&mut receiver).await.kind, FailureKind::LeaseLost);
    soon(async { while sender.send(LEASE).await.is_ok() {} }).await;
}

#[tokio::test]
async fn the_request_side_is_closed_by_dropping_the_sender_alone() {
    let mut store = RawStore::start().await;
    let (mut sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    soon(sender.send(LEASE)).await.expect("it leaves");
    assert!(call.request().await.is_some());
    call.answer(&lease_answer(true));
    assert!(soon(receiver.next()).await.is_ok());
    let quiet = tokio::time::timeout(Duration::from_millis(50), call.request()).await;
    assert!(quiet.is_err(), "the request side was closed");
    drop(sender);
    assert!(call.request().await.is_none());
}

#[tokio::test]
async fn dropping_both_halves_ends_the_call() {
    let mut store = RawStore::start().await;
    let (sender, receiver, mut call) = open(&cluster().await, &mut store).await;
    drop((sender, receiver));
    assert!(call.request().await.is_none());
}

#[tokio::test]
async fn answers_are_read_while_nothing_can_be_sent() {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(0);
    let mut store = RawStore::start_with(builder).await;
    let (mut sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    let stuck = async {
        // Something fits into the queues on the way, but not all of it.
        for _ in 0..100 {
            let regions = (1..=1000).map(target).collect();
            sender.send(StreamRequest::WaitApply { regions }).await?;
        }
        Ok::<_, Failure>(())
    };
    let read = async {
        let mut count = 0;
        while count < 500 {
            call.answer(&lease_answer(true));
            count += soon(receiver.next()).await.expect("answers").len();
        }
    };
    tokio::select! {
        sent = stuck => panic!("the server takes nothing, yet all was sent: {sent:?}"),
        () = read => {}
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_ends_the_stream() {
    let mut store = RawStore::start().await;
    let (_sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    call.answer(&lease_answer(true));
    assert!(soon(receiver.next()).await.is_ok());
    store.cut.send_replace(true);
    let kind = ending(&mut receiver).await.kind;
    assert!(
        matches!(
            kind,
            FailureKind::Transport | FailureKind::Unavailable | FailureKind::Cancelled
        ),
        "{kind:?}"
    );
}

#[tokio::test]
async fn a_server_that_answers_no_pings_ends_the_stream() {
    let mut options = Options::default();
    options.keepalive_interval = Some(Duration::from_millis(20));
    options.keepalive_timeout = Duration::from_millis(20);
    let pd = FakePd::start().await;
    let cluster = soon(TikvCluster::connect([pd.url()], Security::none(), options))
        .await
        .expect("PD is there");
    let mut store = RawStore::start().await;
    let (_sender, mut receiver, _call) = open(&cluster, &mut store).await;
    store.frozen.send_replace(true);
    assert_eq!(ending(&mut receiver).await.kind, FailureKind::Unavailable);
}

#[tokio::test]
async fn each_stream_has_a_connection_of_its_own_and_listings_share_another() {
    let mut store = RawStore::start().await;
    let cluster = cluster().await;
    let first = open(&cluster, &mut store).await;
    let second = open(&cluster, &mut store).await;
    assert_eq!(store.connections.load(Ordering::SeqCst), 2);
    for _ in 0..3 {
        let at = store.store();
        let (claims, ()) = tokio::join!(soon(cluster.list_claims(&at)), async {
            store.call().await.end(0, "");
        });
        assert!(soon(claims.expect("it lists").next()).await.is_none());
    }
    assert_eq!(store.connections.load(Ordering::SeqCst), 3);
    drop((first, second));
}

#[tokio::test]
async fn a_flood_that_lies_unread_does_not_close_the_connection() {
    const CLAIMS: u64 = 20_000;
    let mut store = RawStore::start().await;
    let cluster = cluster().await;
    let at = store.store();
    let (claims, call) = tokio::join!(soon(cluster.list_claims(&at)), async {
        let mut call = store.call().await;
        for id in 1..=CLAIMS {
            call.answer(&claim(id));
        }
        call
    });
    let mut claims = claims.expect("it lists");
    // Long enough for all of it to lie in the client's buffers.
    tokio::time::sleep(Duration::from_millis(300)).await;
    call.end(0, "");
    let mut count = 0;
    while let Some(batch) = soon(claims.next()).await {
        count += batch.expect("no loss").len() as u64;
    }
    assert_eq!(count, CLAIMS);
}

#[tokio::test]
async fn a_listing_that_is_dropped_unanswered_takes_its_connection_out_of_use() {
    let mut store = RawStore::start().await;
    let cluster = cluster().await;
    let at = store.store();
    for dialled in 1..=2 {
        let mut listing = Box::pin(cluster.list_claims(&at));
        let call = tokio::select! {
            _ = &mut listing => panic!("nothing was answered"),
            call = store.call() => call,
        };
        drop((listing, call));
        assert_eq!(store.connections.load(Ordering::SeqCst), dialled);
    }
}

#[tokio::test]
async fn an_answer_of_unknown_type_comes_after_those_before_it() {
    let mut store = RawStore::start().await;
    let (_sender, mut receiver, mut call) = open(&cluster().await, &mut store).await;
    call.answer(&lease_answer(true));
    call.answer(&PrepareSnapshotBackupResponse {
        ty: 9,
        region: Some(metapb::Region::default()),
        ..PrepareSnapshotBackupResponse::default()
    });
    assert_eq!(soon(receiver.next()).await.expect("the lease").len(), 1);
    let failure = soon(receiver.next()).await.expect_err("unknown");
    assert_eq!(failure.kind, FailureKind::Malformed);
}

#[tokio::test]
async fn a_store_that_is_not_there_cannot_be_dialled() {
    let at = store_at(dead_address().await);
    let failure = soon(cluster().await.open_stream(&at))
        .await
        .map(drop)
        .expect_err("nobody listens");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("onnection refused"), "{failure}");
}

#[tokio::test]
async fn streams_one_after_the_other_are_all_answered() {
    let cluster = cluster().await;
    let mut store = RawStore::start().await;
    let at = store.store();
    for _ in 0..300 {
        let serve = async {
            let mut call = store.call().await;
            call.request().await.expect("it comes");
            call.answer(&lease_answer(false));
            call.end(0, "");
        };
        let lease = async {
            let (mut sender, mut receiver) =
                soon(cluster.open_stream(&at)).await.expect("it opens");
            soon(sender.send(StreamRequest::Finish))
                .await
                .expect("it leaves");
            assert_eq!(soon(receiver.next()).await.expect("an answer").len(), 1);
            assert_eq!(ending(&mut receiver).await.kind, FailureKind::Finished);
        };
        tokio::join!(serve, lease);
    }
}
