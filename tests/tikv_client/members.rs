//! Who answers for PD, and what happens when somebody else does.

use std::time::Duration;

use snapshot_prepare::cluster::ClusterClient;
use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::pb::metapb;
use snapshot_prepare::pb::pdpb::{ErrorType, Timestamp};
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::{Code, Status};

use crate::fake_pd::{FakePd, Turn};
use crate::fake_store::FakeStore;
use crate::support::{connect, dead_address, listen, soon};

async fn try_connect<T: ToString>(
    endpoints: impl IntoIterator<Item = T>,
) -> Result<TikvCluster, snapshot_prepare::error::Error> {
    let mut options = Options::default();
    options.connect_timeout = Duration::from_millis(500);
    let endpoints: Vec<_> = endpoints.into_iter().map(|each| each.to_string()).collect();
    soon(TikvCluster::connect(endpoints, Security::none(), options)).await
}

/// Two members, both of which say that the first leads.
async fn two_members() -> (FakePd, FakePd) {
    let first = FakePd::start().await;
    let second = FakePd::start().await;
    second.follow(&first);
    let members = vec![first.url(), second.url()];
    first.script().members.clone_from(&members);
    second.script().members = members;
    (first, second)
}

fn lead(new: &FakePd, old: &FakePd) {
    new.follow(new);
    old.follow(new);
}

#[tokio::test]
async fn the_cluster_id_comes_from_any_member_with_or_without_scheme() {
    let (_, follower) = two_members().await;
    for endpoint in [follower.address.to_string(), follower.url()] {
        assert_eq!(connect(endpoint).await.cluster_id(), 7);
    }
    let mixed = [dead_address().await, follower.address];
    assert_eq!(
        try_connect(mixed)
            .await
            .expect("one is enough")
            .cluster_id(),
        7
    );
}

#[tokio::test]
async fn stores_come_from_the_leader() {
    let (leader, follower) = two_members().await;
    leader.script().stores = vec![metapb::Store {
        id: 4,
        address: "tikv-4:20160".to_owned(),
        state: metapb::StoreState::Tombstone.into(),
        version: "8.5.2".to_owned(),
        labels: vec![metapb::StoreLabel {
            key: "engine".to_owned(),
            value: "tiflash".to_owned(),
        }],
        last_heartbeat: 123,
        ..metapb::Store::default()
    }];
    let cluster = connect(follower.url()).await;
    let stores = soon(cluster.list_stores())
        .await
        .expect("the leader answers");
    assert_eq!(stores.len(), 1);
    let store = &stores[0];
    assert_eq!(
        (store.id.0, store.address.as_str(), store.version.as_str()),
        (4, "tikv-4:20160", "8.5.2")
    );
    assert!(store.is_tiflash() && !store.takes_part());
    assert_eq!(store.last_heartbeat_ns, 123);
    assert_eq!(follower.count("GetAllStores"), 0);
}

#[tokio::test]
async fn a_member_that_leads_no_more_is_left_for_the_new_leader() {
    for refusal in [
        Turn::Fail(Status::unavailable("not leader")),
        Turn::HeaderError(ErrorType::Unknown, "pd server is not leader"),
    ] {
        let (old, new) = two_members().await;
        let cluster = connect(old.url()).await;
        soon(cluster.list_stores())
            .await
            .expect("the old one leads");
        old.script().always = Some(refusal.clone());
        lead(&new, &old);
        soon(cluster.list_stores())
            .await
            .expect("the new one leads");
        assert_eq!(
            (old.count("GetAllStores"), new.count("GetAllStores")),
            (2, 1),
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn a_leader_that_is_gone_is_left_for_a_member_that_was_not_named() {
    let (old, new) = two_members().await;
    let cluster = connect(old.url()).await;
    soon(cluster.list_stores())
        .await
        .expect("the old one leads");
    lead(&new, &old);
    old.stop().await;
    soon(cluster.list_stores())
        .await
        .expect("the new one leads");
    assert_eq!(new.count("GetAllStores"), 1);
}

#[tokio::test]
async fn one_call_asks_twice_at_most() {
    let (one, other) = two_members().await;
    let refusal = Turn::Fail(Status::unavailable("not leader"));
    one.script().always = Some(refusal.clone());
    other.script().always = Some(refusal);
    let cluster = connect(one.url()).await;
    let failure = soon(cluster.list_stores()).await.expect_err("nobody leads");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(
        failure.message.contains(&one.address.to_string()),
        "{failure}"
    );
    assert_eq!(one.count("GetAllStores") + other.count("GetAllStores"), 2);
}

#[tokio::test]
async fn a_call_that_is_dropped_makes_the_next_one_look_for_the_leader() {
    let (old, new) = two_members().await;
    let cluster = connect(old.url()).await;
    soon(cluster.list_stores())
        .await
        .expect("the old one leads");
    old.script().always = Some(Turn::Hang);
    {
        let mut hanging = Box::pin(cluster.list_stores());
        soon(async {
            while old.count("GetAllStores") < 2 {
                tokio::select! {
                    _ = &mut hanging => panic!("it hangs"),
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
            }
        })
        .await;
    }
    lead(&new, &old);
    soon(cluster.list_stores())
        .await
        .expect("the new one leads");
    assert_eq!(new.count("GetAllStores"), 1);
}

#[tokio::test]
async fn a_leader_under_a_name_that_leads_nowhere_is_asked_where_it_answered() {
    let pd = FakePd::start().await;
    pd.script().leader = Some(format!("http://{}", dead_address().await));
    let cluster = connect(pd.url()).await;
    soon(cluster.list_stores()).await.expect("it is the leader");
}

#[tokio::test]
async fn no_leader_is_a_failure_that_passes() {
    let pd = FakePd::start().await;
    pd.script().leader = None;
    pd.script().always = Some(Turn::Fail(Status::unavailable("no leader")));
    let cluster = connect(pd.url()).await;
    let failure = soon(cluster.list_stores()).await.expect_err("no leader");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    pd.script().always = None;
    pd.follow(&pd);
    soon(cluster.list_stores()).await.expect("a leader again");
}

#[tokio::test]
async fn endpoints_of_two_clusters_are_noticed_at_the_start() {
    let (one, other) = (FakePd::start().await, FakePd::start().await);
    other.script().cluster_id = 8;
    let error = try_connect([one.url(), other.url()])
        .await
        .expect_err("two clusters");
    assert_eq!(error.kind(), ErrorKind::WrongCluster);
    for part in [
        one.address.to_string(),
        other.address.to_string(),
        "7".into(),
        "8".into(),
    ] {
        assert!(error.message().contains(&part), "{error}");
    }
}

#[tokio::test]
async fn another_cluster_id_in_a_later_answer_is_noticed() {
    let pd = FakePd::start().await;
    let cluster = connect(pd.url()).await;
    pd.script().cluster_id = 8;
    let failure = soon(cluster.list_stores())
        .await
        .expect_err("another cluster");
    assert_eq!(failure.kind, FailureKind::WrongCluster);
    let mismatch = Status::new(
        Code::FailedPrecondition,
        "mismatch cluster id, need 8 but got 7",
    );
    pd.script().cluster_id = 7;
    pd.script().turns.push_back(Turn::Fail(mismatch));
    let failure = soon(cluster.list_stores())
        .await
        .expect_err("another cluster");
    assert_eq!(failure.kind, FailureKind::WrongCluster);
}

#[tokio::test]
async fn what_is_not_pd_is_named() {
    let store = FakeStore::start().await;
    let error = try_connect([store.address]).await.expect_err("a store");
    assert_eq!(error.kind(), ErrorKind::WrongService, "{error}");
    assert!(
        error.message().contains(&store.address.to_string()),
        "{error}"
    );

    let (listener, address) = listen().await;
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
            let _ = socket.write_all(answer).await;
            let _ = socket.read_to_end(&mut Vec::new()).await;
        }
    });
    let error = try_connect([address]).await.expect_err("a web server");
    assert_eq!(error.kind(), ErrorKind::WrongService, "{error}");
    assert!(error.message().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn nobody_there_names_every_endpoint() {
    let (silent, silent_address) = listen().await;
    let dead = [dead_address().await, dead_address().await];
    let endpoints = [dead[0], silent_address, dead[1]];
    let error = try_connect(endpoints).await.expect_err("nobody there");
    drop(silent);
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.is_retryable());
    for address in endpoints {
        assert!(error.message().contains(&address.to_string()), "{error}");
    }
    assert!(error.message().contains("onnection refused"), "{error}");
    assert!(
        error.message().contains("no answer within 500ms"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wrong_service_beside_a_dead_endpoint_may_still_come_right() {
    let store = FakeStore::start().await;
    let error = try_connect([store.address, dead_address().await])
        .await
        .expect_err("no PD");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn an_endpoint_that_closes_every_connection_may_want_tls() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            drop(socket);
        }
    });
    let error = try_connect([address]).await.expect_err("nobody speaks");
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.message().contains("may want TLS"), "{error}");
}

#[tokio::test]
async fn the_lowest_timestamp_is_composed_or_unsupported() {
    let pd = FakePd::start().await;
    let cluster = connect(pd.url()).await;
    let failure = soon(cluster.min_ts()).await.expect_err("an old PD");
    assert_eq!(failure.kind, FailureKind::Unsupported);
    pd.script().min_ts = Some(Timestamp {
        physical: 5,
        logical: 6,
        suffix_bits: 0,
    });
    assert_eq!(soon(cluster.min_ts()).await, Ok((5 << 18) | 6));
}

/// A connection dies with the runtime that drives it, and with that runtime's
/// pauses.
#[test]
fn a_handle_works_in_another_runtime_than_the_one_it_came_from() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let first = runtime();
    let (pd, cluster) = first.block_on(async {
        let pd = FakePd::start().await;
        let cluster = connect(pd.url()).await;
        soon(cluster.list_stores()).await.expect("PD answers");
        (pd, cluster)
    });
    // The first runtime stands, but nobody drives it.
    runtime()
        .block_on(async { soon(cluster.list_stores()).await })
        .expect("PD answers");
    assert_eq!(pd.count("GetAllStores"), 2);
    drop(first);
}
