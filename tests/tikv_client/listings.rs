//! Listings of a store's claims.

use snapshot_prepare::cluster::{Batches, ClusterClient};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::pb::backup::CheckAdminResponse;
use snapshot_prepare::region::{Claim, PeerRole, Store};
use snapshot_prepare::tikv::TikvCluster;
use tokio::net::TcpListener;
use tonic::Status;

use crate::fake_pd::FakePd;
use crate::fake_store::{FakeStore, claim};
use crate::support::{connect, dead_address, soon, store_at};

async fn cluster() -> TikvCluster {
    connect(FakePd::start().await.url()).await
}

/// What a listing brought, and how it failed if it did.
async fn list(cluster: &TikvCluster, store: &Store) -> (Vec<Claim>, Option<Failure>) {
    soon(async {
        let mut claims = Vec::new();
        let mut batches = match cluster.list_claims(store).await {
            Ok(batches) => batches,
            Err(failure) => return (claims, Some(failure)),
        };
        while let Some(batch) = batches.next().await {
            match batch {
                Ok(batch) => {
                    assert!(!batch.is_empty());
                    claims.extend(batch);
                }
                Err(failure) => return (claims, Some(failure)),
            }
        }
        (claims, None)
    })
    .await
}

#[tokio::test]
async fn all_claims_come_with_all_they_say() {
    let store = FakeStore::start().await;
    store.script().claims = (1..=3000).map(claim).collect();
    let (claims, failure) = list(&cluster().await, &store_at(store.address)).await;
    assert_eq!(failure, None);
    assert_eq!(claims.len(), 3000);
    let last = &claims[2999];
    assert_eq!(last.region.id.0, 3000);
    assert_eq!(last.region.peers[0].role, PeerRole::IncomingVoter);
    assert!(!last.has_pending_admin && claims[0].has_pending_admin);
}

#[tokio::test]
async fn a_store_without_regions_lists_nothing_and_ends_well() {
    let store = FakeStore::start().await;
    assert_eq!(
        list(&cluster().await, &store_at(store.address)).await,
        (Vec::new(), None)
    );
}

#[tokio::test]
async fn what_came_before_a_failure_is_handed_over() {
    let store = FakeStore::start().await;
    let cluster = cluster().await;
    let at = store_at(store.address);
    store.script().claims = (1..=3).map(claim).collect();
    store.script().listing_ends_in = Some(Status::unavailable("going down"));
    let (claims, failure) = list(&cluster, &at).await;
    assert_eq!(claims.len(), 3);
    assert_eq!(
        failure.map(|found| found.kind),
        Some(FailureKind::Unavailable)
    );

    store
        .script()
        .claims
        .insert(2, CheckAdminResponse::default());
    let (claims, failure) = list(&cluster, &at).await;
    assert_eq!(claims.len(), 2);
    assert_eq!(
        failure.map(|found| found.kind),
        Some(FailureKind::Malformed)
    );
}

#[tokio::test]
async fn the_words_of_the_partitioned_engine_mean_unsupported() {
    let store = FakeStore::start().await;
    store.script().listing_fails = Some(Status::internal(
        "broadcast_check_pending_admin not implemented; note: Raftstore V2 doesn't support snapshot backup yet.",
    ));
    let (_, failure) = list(&cluster().await, &store_at(store.address)).await;
    assert_eq!(
        failure.map(|found| found.kind),
        Some(FailureKind::Unsupported)
    );
}

#[tokio::test]
async fn what_is_not_a_store_is_unsupported() {
    let pd = FakePd::start().await;
    let (_, failure) = list(&cluster().await, &store_at(pd.address)).await;
    assert_eq!(
        failure.map(|found| found.kind),
        Some(FailureKind::Unsupported)
    );
}

#[tokio::test]
async fn a_store_that_was_restarted_is_dialled_anew_within_the_call() {
    let store = FakeStore::start().await;
    let cluster = cluster().await;
    let at = store_at(store.address);
    assert_eq!(list(&cluster, &at).await.1, None);
    store.stop().await;
    let again = TcpListener::bind(store.address).await.expect("free again");
    let store = FakeStore::start_on(again, None);
    store.script().claims = vec![claim(1)];
    let (claims, failure) = list(&cluster, &at).await;
    assert_eq!((claims.len(), failure), (1, None));
}

#[tokio::test]
async fn the_address_is_taken_anew_each_time() {
    let store = FakeStore::start().await;
    let cluster = cluster().await;
    let (_, failure) = list(&cluster, &store_at(dead_address().await)).await;
    let failure = failure.expect("nobody listens");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("onnection refused"), "{failure}");
    assert_eq!(list(&cluster, &store_at(store.address)).await.1, None);
    let (_, failure) = list(&cluster, &store_at("no port")).await;
    assert_eq!(
        failure.map(|found| found.kind),
        Some(FailureKind::Unavailable)
    );
}
