//! The gRPC client against the simulated cluster over loopback: the conformance
//! suite of the trait, and what the network adds to it.

#![cfg(all(feature = "tikv", feature = "sim"))]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use snapshot_prepare::cluster::conformance::{Check, Expectation, Verdict};
use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamRequest,
};
use snapshot_prepare::error::FailureKind;
use snapshot_prepare::region::Store;
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;
use snapshot_prepare::tikv::{Options, Security, TikvCluster};

const SEED: u64 = 20_261_130;
const REGIONS: u32 = 200;
/// Far longer than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(20);

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future)
        .await
        .expect("nothing came for 20 seconds")
}

async fn serve() -> (Served, TikvCluster) {
    let layout = Layout::generate(3, REGIONS, 3, SEED);
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut faults = FaultPlan::none();
    // Without jitter the model lets nothing that is sent on a stream overtake the
    // opening of that stream, as is so on a real connection.
    faults.timing.jitter_percent = 0;
    let served = Served::start(&layout, faults, SEED, free)
        .await
        .expect("it listens");
    let endpoints = [served.pd_endpoint()];
    let cluster = soon(TikvCluster::connect(
        endpoints,
        Security::none(),
        Options::default(),
    ))
    .await
    .expect("PD answers");
    (served, cluster)
}

async fn claims(cluster: &TikvCluster, store: &Store) -> usize {
    soon(async {
        let mut count = 0;
        let mut listing = cluster.list_claims(store).await.expect("it lists");
        while let Some(batch) = listing.next().await {
            count += batch.expect("it lists").len();
        }
        count
    })
    .await
}

#[tokio::test]
async fn the_client_conforms() {
    let (served, cluster) = serve().await;
    let expected = Expectation {
        stores: served.stores().iter().map(|store| store.id).collect(),
        regions: REGIONS as usize,
        store: served.stores()[0].id,
    };
    for check in Check::ALL {
        let verdict = tokio::time::timeout(HANG, check.run(&cluster, &expected))
            .await
            .unwrap_or_else(|_| panic!("{check} hangs; seed {SEED}"));
        assert_eq!(verdict, Ok(Verdict::Passed), "seed {SEED}");
    }
    soon(served.shutdown()).await;
}

#[tokio::test]
async fn the_cluster_is_the_one_that_is_served() {
    let (served, cluster) = serve().await;
    assert_eq!(cluster.cluster_id(), served.cluster_id());
    let stores = soon(cluster.list_stores()).await.expect("PD answers");
    let addresses = |stores: &[Store]| -> Vec<_> {
        let pairs = stores.iter().map(|store| (store.id, store.address.clone()));
        pairs.collect()
    };
    assert_eq!(addresses(&stores), addresses(served.stores()));
    let first = soon(cluster.min_ts()).await.expect("a timestamp");
    let second = soon(cluster.min_ts()).await.expect("a timestamp");
    assert!(first <= second);
}

#[tokio::test]
async fn the_leader_of_pd_is_followed_wherever_it_goes() {
    let (served, cluster) = serve().await;
    for _ in 0..4 {
        assert_eq!(
            soon(cluster.list_stores()).await.map(|stores| stores.len()),
            Ok(3)
        );
        served.move_pd_leader();
    }
}

#[tokio::test]
async fn broken_connections_end_streams_and_are_dialled_anew_for_calls() {
    let (served, cluster) = serve().await;
    let store = &served.stores()[0];
    let before = claims(&cluster, store).await;
    let (mut sender, mut receiver) = soon(cluster.open_stream(store)).await.expect("it opens");
    soon(sender.send(StreamRequest::UpdateLease { seconds: 60 }))
        .await
        .expect("it leaves");
    soon(receiver.next()).await.expect("it is answered");
    served.break_connections(store.id);
    let failure = soon(receiver.next()).await.expect_err("it is cut");
    assert!(
        matches!(
            failure.kind,
            FailureKind::Transport | FailureKind::Unavailable | FailureKind::Cancelled
        ),
        "{failure:?}"
    );
    assert_eq!(claims(&cluster, store).await, before);
}

#[tokio::test]
async fn a_cluster_that_is_gone_is_unreachable() {
    let (served, cluster) = serve().await;
    let store = served.stores()[0].clone();
    soon(cluster.list_stores()).await.expect("PD answers");
    claims(&cluster, &store).await;
    soon(served.shutdown()).await;
    let failure = soon(cluster.list_stores()).await.expect_err("gone");
    assert_eq!(failure.kind, FailureKind::Unavailable, "{failure}");
    let failure = soon(cluster.list_claims(&store))
        .await
        .map(drop)
        .expect_err("gone");
    assert_eq!(failure.kind, FailureKind::Unavailable, "{failure}");
}
