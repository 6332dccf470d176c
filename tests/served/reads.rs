//! Leader reads, alone and many in a message.

use std::collections::BTreeMap;

use futures_util::stream;
use snapshot_prepare::pb::kvrpcpb::{BatchGetRequest, Context, RawBatchGetRequest};
use snapshot_prepare::pb::metapb;
use snapshot_prepare::pb::tikvpb::batch_commands_request::{Request, request};
use snapshot_prepare::pb::tikvpb::batch_commands_response::response::Cmd;
use snapshot_prepare::pb::tikvpb::tikv_client::TikvClient;
use snapshot_prepare::pb::tikvpb::{BatchCommandsRequest, BatchCommandsResponse};
use snapshot_prepare::region::{Region, StoreId};
use snapshot_prepare::sim::layout::Layout;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::{dial_store, led_by, patiently, serve, wire_epoch};

fn context(region: &Region, store: u64, cluster_id: u64) -> Context {
    let peer = region.peer_on(StoreId(store)).expect("a peer");
    Context {
        region_id: region.id.0,
        region_epoch: Some(wire_epoch(region)),
        peer: Some(metapb::Peer {
            id: peer.id.0,
            store_id: store,
            ..metapb::Peer::default()
        }),
        cluster_id,
        ..Context::default()
    }
}

#[tokio::test]
async fn reads_are_judged_by_their_context() {
    let layout = Layout::generate(3, 30, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let region = led_by(&layout, 1)[0].clone();
    let good = context(&region, 1, served.cluster_id());
    let read = |context: Context| {
        let mut client = TikvClient::new(channel.clone());
        async move {
            let request = BatchGetRequest {
                context: Some(context),
                keys: Vec::new(),
                version: u64::MAX,
            };
            patiently(client.kv_batch_get(request)).await
        }
    };
    let served_well = read(good.clone()).await.expect("answered").into_inner();
    assert_eq!((served_well.region_error, served_well.error), (None, None));
    assert!(served_well.pairs.is_empty());

    let error = async |context: Context| {
        let answer = read(context).await.expect("answered").into_inner();
        answer.region_error.expect("refused")
    };
    let no_peer = error(Context {
        peer: None,
        ..good.clone()
    })
    .await;
    assert!(no_peer.store_not_match.is_some(), "{no_peer:?}");
    let no_epoch = error(Context {
        region_epoch: None,
        ..good.clone()
    })
    .await;
    assert!(no_epoch.epoch_not_match.is_some(), "{no_epoch:?}");
    let unknown = error(Context {
        region_id: 987_654,
        ..good.clone()
    })
    .await;
    assert_eq!(unknown.message, "region 987654 is missing");
    let led_elsewhere = led_by(&layout, 2)[0].clone();
    let follower = error(context(&led_elsewhere, 1, 0)).await;
    let leader = follower.not_leader.expect("not leader").leader;
    assert_eq!(leader.expect("known").store_id, 2);

    let status = read(Context {
        cluster_id: served.cluster_id() + 1,
        ..good.clone()
    })
    .await
    .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    let words = "the cluster id of the request does not match the TiKV cluster";
    assert_eq!(status.message(), words);

    // Another API version is no region error.
    let answer = read(Context {
        api_version: 2,
        ..good.clone()
    });
    let answer = answer.await.expect("answered").into_inner();
    assert_eq!(answer.region_error, None);
    assert!(!answer.error.expect("an error").abort.is_empty());
    assert_eq!(answer.pairs.len(), 1);
    let mut client = TikvClient::new(channel.clone());
    let raw = RawBatchGetRequest {
        context: Some(Context {
            api_version: 2,
            ..good
        }),
        ..RawBatchGetRequest::default()
    };
    let answer = patiently(client.raw_batch_get(raw))
        .await
        .expect("answered");
    let answer = answer.into_inner();
    assert_eq!(answer.region_error, None);
    assert!(
        answer.pairs[0]
            .error
            .as_ref()
            .is_some_and(|e| !e.abort.is_empty())
    );
    served.shutdown().await;
}

type Commands = mpsc::UnboundedSender<BatchCommandsRequest>;

/// Makes a call with one message on it, and returns when the headers are there.
async fn batch(
    channel: &Channel,
    message: BatchCommandsRequest,
) -> Result<(Commands, Streaming<BatchCommandsResponse>), Status> {
    let (commands, mut queue) = mpsc::unbounded_channel();
    commands.send(message).expect("the queue is there");
    let sent = stream::poll_fn(move |cx| queue.poll_recv(cx));
    let mut client = TikvClient::new(channel.clone());
    let answers = patiently(client.batch_commands(sent)).await?;
    Ok((commands, answers.into_inner()))
}

fn message(reads: impl IntoIterator<Item = (u64, Option<request::Cmd>)>) -> BatchCommandsRequest {
    let (request_ids, requests) = reads
        .into_iter()
        .map(|(number, cmd)| (number, Request { cmd }))
        .unzip();
    BatchCommandsRequest {
        requests,
        request_ids,
    }
}

fn get(context: Context) -> Option<request::Cmd> {
    Some(request::Cmd::BatchGet(BatchGetRequest {
        context: Some(context),
        keys: Vec::new(),
        version: u64::MAX,
    }))
}

fn raw_get(context: Context) -> Option<request::Cmd> {
    Some(request::Cmd::RawBatchGet(RawBatchGetRequest {
        context: Some(context),
        ..RawBatchGetRequest::default()
    }))
}

/// Returns the answers by their numbers, up to the end of the call.
async fn rest(mut answers: Streaming<BatchCommandsResponse>) -> BTreeMap<u64, Option<Cmd>> {
    let mut found = BTreeMap::new();
    while let Some(message) = patiently(answers.message()).await.expect("a good end") {
        assert_eq!(message.request_ids.len(), message.responses.len());
        for (number, response) in message.request_ids.into_iter().zip(message.responses) {
            assert!(
                found.insert(number, response.cmd).is_none(),
                "answered twice"
            );
        }
    }
    found
}

#[tokio::test]
async fn reads_in_a_message_are_judged_each_by_itself() {
    let layout = Layout::generate(3, 30, 3, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let good = context(&led_by(&layout, 1)[0], 1, served.cluster_id());
    let follower = context(&led_by(&layout, 2)[0], 1, 0);
    let wrong_version = Context {
        api_version: 2,
        ..good.clone()
    };
    let first = message([
        (70, get(good.clone())),
        (3, get(follower.clone())),
        (5, raw_get(good.clone())),
        (6, raw_get(follower)),
        (7, get(wrong_version)),
        // A command that is no read.
        (8, None),
    ]);
    let (commands, answers) = batch(&channel, first).await.expect("served");
    commands
        .send(message([(71, get(good))]))
        .expect("the call is there");
    // What is answered when the client has closed its side still comes.
    drop(commands);
    let found = rest(answers).await;
    let kinds: Vec<_> = found
        .iter()
        .map(|(number, cmd)| {
            let what = match cmd {
                Some(Cmd::BatchGet(get)) if get.region_error.is_some() => "refused",
                Some(Cmd::BatchGet(get)) if get.error.is_some() => "wrong version",
                Some(Cmd::BatchGet(_)) => "served",
                Some(Cmd::RawBatchGet(get)) if get.region_error.is_some() => "refused raw",
                Some(Cmd::RawBatchGet(_)) => "served raw",
                None => "unknown",
            };
            (*number, what)
        })
        .collect();
    let expected = [
        (3, "refused"),
        (5, "served raw"),
        (6, "refused raw"),
        (7, "wrong version"),
        (8, "unknown"),
        (70, "served"),
        (71, "served"),
    ];
    assert_eq!(kinds, expected);
    served.shutdown().await;
}

#[tokio::test]
async fn a_read_for_another_cluster_ends_the_whole_call() {
    let layout = Layout::generate(1, 3, 1, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let good = context(&layout.regions[0].region, 1, served.cluster_id());
    let other = Context {
        cluster_id: served.cluster_id() + 1,
        ..good.clone()
    };
    let (_commands, mut answers) = match batch(&channel, message([(1, get(good))])).await {
        Ok(call) => call,
        Err(status) => panic!("the first read is good: {status}"),
    };
    assert!(patiently(answers.message()).await.is_ok());
    let status = batch(&channel, message([(1, get(other))]))
        .await
        .map(drop)
        .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    served.shutdown().await;
}

#[tokio::test]
async fn a_call_without_commands_ends_well() {
    let layout = Layout::generate(1, 3, 1, 1);
    let served = serve(&layout).await;
    let channel = dial_store(&served, 1).await;
    let mut client = TikvClient::new(channel);
    let answers = patiently(client.batch_commands(stream::empty())).await;
    assert!(rest(answers.expect("served").into_inner()).await.is_empty());
    served.shutdown().await;
}
