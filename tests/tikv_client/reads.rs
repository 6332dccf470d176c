//! Leader reads.

use std::collections::BTreeMap;
use std::time::Duration;

use snapshot_prepare::cluster::{Batches, ClusterClient};
use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::region::{
    PeerId, ReadAnswer, ReadTarget, RegionEpoch, RegionErrorKind, RegionId,
};
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tonic::Code;

use crate::fake_pd::FakePd;
use crate::fake_store::{FakeStore, Messages, Storage};
use crate::support::{connect, soon, store_at};

fn target(id: u64) -> ReadTarget {
    ReadTarget {
        region_id: RegionId(id),
        epoch: RegionEpoch {
            conf_ver: 3,
            version: 4,
        },
        peer_id: PeerId(id + 1000),
    }
}

async fn read_all(
    cluster: &TikvCluster,
    store: &FakeStore,
    ids: impl IntoIterator<Item = u64>,
) -> Result<BTreeMap<u64, Option<RegionErrorKind>>, Failure> {
    soon(async {
        let targets = ids.into_iter().map(target).collect();
        let mut reads = cluster
            .leader_reads(&store_at(store.address), targets)
            .await?;
        let mut found = BTreeMap::new();
        while let Some(batch) = reads.next().await {
            for ReadAnswer {
                region_id, result, ..
            } in batch?
            {
                let kind = result.err().map(|error| error.kind);
                assert_eq!(found.insert(region_id.0, kind), None, "answered twice");
            }
        }
        Ok(found)
    })
    .await
}

/// Both ways of asking: many in a message, and each alone.
fn both_ways() -> [Messages; 2] {
    [Messages::Served, Messages::Refused(Code::Unimplemented)]
}

async fn store_with(messages: Messages) -> FakeStore {
    let store = FakeStore::start().await;
    store.script().messages = messages;
    store
}

#[tokio::test]
async fn each_target_is_answered_once_and_asked_as_a_leader() {
    for messages in both_ways() {
        each_target_is_answered_once(store_with(messages).await).await;
    }
}

async fn each_target_is_answered_once(store: FakeStore) {
    store.script().followed = vec![7];
    let cluster = connect(FakePd::start().await.url()).await;
    let found = read_all(&cluster, &store, 1..=200).await.expect("it reads");
    assert_eq!(found.len(), 200);
    for (id, kind) in found {
        assert_eq!(kind, (id == 7).then_some(RegionErrorKind::NotLeader));
    }
    let script = store.script();
    assert_eq!((script.reads.len(), script.keys_seen), (200, 0));
    for (context, version, raw) in &script.reads {
        assert!(!raw && !context.replica_read && !context.stale_read);
        assert_eq!((*version, context.api_version), (u64::MAX, 0));
        assert_eq!((context.term, context.cluster_id), (0, 7));
        let peer = context.peer.expect("a peer");
        assert_eq!((peer.id, peer.store_id), (context.region_id + 1000, 1));
        let epoch = context.region_epoch.expect("an epoch");
        assert_eq!((epoch.conf_ver, epoch.version), (3, 4));
    }
}

#[tokio::test]
async fn the_reads_under_way_are_bounded() {
    for messages in both_ways() {
        the_reads_of_a_store_are_bounded(store_with(messages).await).await;
    }
}

async fn the_reads_of_a_store_are_bounded(store: FakeStore) {
    store.gate.send_replace(false);
    let pd = FakePd::start().await;
    let mut options = Options::default();
    options.reads_in_flight = 5;
    let cluster = soon(TikvCluster::connect([pd.url()], Security::none(), options))
        .await
        .expect("PD is there");
    let open = async {
        while store.script().now < 5 {
            tokio::task::yield_now().await;
        }
        store.gate.send_replace(true);
    };
    let (found, ()) = tokio::join!(read_all(&cluster, &store, 1..=40), open);
    assert_eq!(found.expect("it reads").len(), 40);
    assert_eq!(store.script().most_at_once, 5);
}

#[tokio::test]
async fn one_read_that_hangs_holds_nothing_up() {
    for messages in both_ways() {
        one_read_hangs(store_with(messages).await).await;
    }
}

async fn one_read_hangs(store: FakeStore) {
    store.script().hanging = vec![2];
    let cluster = connect(FakePd::start().await.url()).await;
    let targets = (1..=100).map(target).collect();
    let mut reads = soon(cluster.leader_reads(&store_at(store.address), targets))
        .await
        .expect("it begins");
    let mut found = Vec::new();
    while found.len() < 99 {
        let batch = soon(reads.next()).await.expect("more to come");
        found.extend(batch.expect("it reads"));
    }
    assert!(
        found
            .iter()
            .all(|answer| answer.result.is_ok() && answer.region_id.0 != 2)
    );
}

#[tokio::test]
async fn reads_that_hang_and_nearly_fill_the_call_leave_the_rest_of_it_to_others() {
    for messages in both_ways() {
        let store = store_with(messages).await;
        store.script().hanging = (1..=15).collect();
        let pd = FakePd::start().await;
        let mut options = Options::default();
        options.reads_in_flight = 16;
        let cluster = soon(TikvCluster::connect([pd.url()], Security::none(), options))
            .await
            .expect("PD is there");
        let targets = (1..=40).map(target).collect();
        let mut reads = soon(cluster.leader_reads(&store_at(store.address), targets))
            .await
            .expect("it begins");
        let mut found = Vec::new();
        while found.len() < 25 {
            let batch = soon(reads.next()).await.expect("more to come");
            found.extend(batch.expect("it reads"));
        }
        let mut ids: Vec<_> = found.iter().map(|answer| answer.region_id.0).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(16..=40), "{found:?}");
    }
}

#[tokio::test]
async fn what_answers_nothing_that_was_asked_is_passed_over() {
    let store = store_with(Messages::Muddled).await;
    let cluster = connect(FakePd::start().await.url()).await;
    // No answer is counted twice: the helper looks for that.
    let found = read_all(&cluster, &store, 1..=600).await.expect("it reads");
    assert!(found.keys().copied().eq(1..=600));
}

#[tokio::test]
async fn the_kind_of_read_follows_the_storage_and_is_remembered() {
    for (storage, kv, raw) in [
        (Storage::V1, 12, 0),
        (Storage::V2, 12, 0),
        (Storage::V1Ttl, 1, 12),
    ] {
        let store = FakeStore::start().await;
        store.script().storage = storage;
        let cluster = connect(FakePd::start().await.url()).await;
        for round in [1..=1, 2..=12] {
            let found = read_all(&cluster, &store, round).await.expect("it reads");
            assert!(found.values().all(Option::is_none), "{storage:?} {found:?}");
        }
        let script = store.script();
        let raw_reads = script.reads.iter().filter(|(_, _, raw)| *raw).count();
        assert_eq!(
            (script.reads.len() - raw_reads, raw_reads),
            (kv, raw),
            "{storage:?}"
        );
    }
}

#[tokio::test]
async fn a_storage_that_changes_is_followed_and_one_that_refuses_all_is_told() {
    let store = FakeStore::start().await;
    let cluster = connect(FakePd::start().await.url()).await;
    for storage in [Storage::V1Ttl, Storage::V2, Storage::V1Ttl] {
        store.script().storage = storage;
        let found = read_all(&cluster, &store, [1]).await.expect("it reads");
        assert_eq!(found[&1], None, "{storage:?}");
    }
    store.script().storage = Storage::Neither;
    let found = read_all(&cluster, &store, [1]).await.expect("it reads");
    assert_eq!(found[&1], Some(RegionErrorKind::Unsupported));
}

#[tokio::test]
async fn a_store_that_goes_down_ends_the_reads_with_a_failure() {
    let store = FakeStore::start().await;
    let cluster = connect(FakePd::start().await.url()).await;
    store.gate.send_replace(false);
    let stop = async {
        while store.script().now < 3 {
            tokio::task::yield_now().await;
        }
        store.stop().await;
    };
    let (found, ()) = tokio::join!(read_all(&cluster, &store, 1..=3), stop);
    let kind = found.expect_err("it is gone").kind;
    assert!(
        matches!(
            kind,
            FailureKind::Transport | FailureKind::Unavailable | FailureKind::Cancelled
        ),
        "{kind:?}"
    );
    let failure = soon(cluster.leader_reads(&store_at(store.address), vec![target(1)]))
        .await
        .map(drop)
        .expect_err("nobody listens");
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[tokio::test]
async fn no_targets_make_no_calls() {
    let store = FakeStore::start().await;
    let cluster = connect(FakePd::start().await.url()).await;
    assert_eq!(read_all(&cluster, &store, []).await, Ok(BTreeMap::new()));
    assert!(store.script().reads.is_empty());
}

#[tokio::test]
async fn many_reads_go_out_in_few_messages() {
    let store = FakeStore::start().await;
    let cluster = connect(FakePd::start().await.url()).await;
    let found = read_all(&cluster, &store, 1..=2000).await;
    assert_eq!(found.expect("it reads").len(), 2000);
    let sizes = store.script().message_sizes.clone();
    assert_eq!(sizes.iter().sum::<usize>(), 2000, "{sizes:?}");
    assert!(sizes.len() <= 1 + 1488_usize.div_ceil(64), "{sizes:?}");
}

#[tokio::test]
async fn a_store_that_cannot_take_many_in_a_message_is_asked_one_by_one() {
    for messages in [
        Messages::Refused(Code::Unimplemented),
        Messages::Refused(Code::Internal),
        Messages::Refused(Code::Unknown),
        Messages::Unknown,
        Messages::Ended,
    ] {
        let store = store_with(messages.clone()).await;
        let cluster = connect(FakePd::start().await.url()).await;
        for round in [1..=9, 10..=50] {
            let found = read_all(&cluster, &store, round.clone()).await;
            let found = found.expect("it reads");
            assert!(found.keys().copied().eq(round), "{messages:?} {found:?}");
            assert!(found.values().all(Option::is_none), "{messages:?}");
        }
        // And it is remembered.
        let tried = store.script().message_sizes.len();
        assert!(tried <= 1, "{messages:?}: {tried} messages");
    }
}

#[tokio::test]
async fn what_refuses_the_client_refuses_it_in_either_way() {
    for (code, kind) in [
        (Code::Unauthenticated, FailureKind::Unauthenticated),
        (Code::Unavailable, FailureKind::Unavailable),
    ] {
        let store = store_with(Messages::Refused(code)).await;
        let cluster = connect(FakePd::start().await.url()).await;
        let failure = read_all(&cluster, &store, [1]).await.expect_err("refused");
        assert_eq!(failure.kind, kind);
        assert!(store.script().reads.is_empty());
    }
}

#[tokio::test]
async fn a_message_that_is_swallowed_sends_later_reads_out_alone() {
    let store = store_with(Messages::Swallowed).await;
    let cluster = connect(FakePd::start().await.url()).await;
    let store_at = store_at(store.address);
    let mut swallowed = soon(cluster.leader_reads(&store_at, vec![target(1)]))
        .await
        .expect("it begins");
    let silence = tokio::time::timeout(Duration::from_millis(1100), swallowed.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    let found = read_all(&cluster, &store, [1]).await.expect("it reads");
    assert_eq!(found[&1], None);
}

#[tokio::test]
async fn a_read_that_a_store_drops_is_not_answered_and_ends_the_call() {
    let store = store_with(Messages::Without(3)).await;
    let cluster = connect(FakePd::start().await.url()).await;
    let found = read_all(&cluster, &store, 1..=5).await.expect("it ends");
    assert!(found.keys().copied().eq([1, 2, 4, 5]), "{found:?}");
}

#[tokio::test]
async fn answers_that_came_before_a_cut_count() {
    let store = store_with(Messages::CutAfterOne).await;
    let cluster = connect(FakePd::start().await.url()).await;
    let targets = (1..=5).map(target).collect();
    let mut reads = soon(cluster.leader_reads(&store_at(store.address), targets))
        .await
        .expect("it begins");
    let first = soon(reads.next()).await.expect("one").expect("it reads");
    assert_eq!(first.len(), 1);
    let failure = soon(reads.next()).await.expect("an end").map(drop);
    assert_eq!(failure.map_err(|f| f.kind), Err(FailureKind::Other));
}
