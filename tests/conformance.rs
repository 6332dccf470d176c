//! Every implementation of `ClusterClient` runs the public suite, and the suite
//! finds out those that are not what they should be.
#![cfg(feature = "sim")]

use std::time::Duration;

use snapshot_prepare::cluster::ClusterClient;
use snapshot_prepare::cluster::conformance::{Check, Expectation, Verdict};
use snapshot_prepare::region::StoreId;
use snapshot_prepare::sim::client::SimCluster;
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::model::StorageMode;

/// A check that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn layouts() -> Vec<(&'static str, Layout)> {
    let dump = include_bytes!("data/regions.json");
    let stores = include_bytes!("data/stores.json");
    vec![
        ("one of all", Layout::generate(1, 1, 1, 1)),
        ("two stores, no replicas", Layout::generate(2, 9, 1, 2)),
        ("usual", Layout::generate(3, 100, 3, 3)),
        ("more stores than replicas", Layout::generate(7, 300, 3, 4)),
        (
            "a dump with TiFlash, a tombstone and an offline store",
            Layout::from_pd_json_with_stores(dump, stores).expect("sound"),
        ),
    ]
}

fn expectation(layout: &Layout) -> Expectation {
    Expectation {
        stores: layout.stores.iter().map(|store| store.id).collect(),
        regions: layout.regions.len(),
        store: layout.regions[0].leader.expect("led"),
    }
}

/// Runs all checks; those that may be skipped are named.
async fn conforms<C: ClusterClient>(client: &C, expected: &Expectation, may_skip: &[Check]) {
    for check in Check::ALL {
        let verdict = tokio::time::timeout(PATIENCE, check.run(client, expected)).await;
        match verdict.unwrap_or_else(|_| panic!("{check} hangs")) {
            Ok(Verdict::Passed) => {}
            Ok(verdict) => assert!(may_skip.contains(&check), "{check}: {verdict:?}"),
            Err(violation) => panic!("{violation}"),
        }
    }
}

fn skipped_on(layout: &Layout) -> Vec<Check> {
    let mut skipped = Vec::new();
    if layout.stores.len() < 2 {
        skipped.extend([Check::StreamsOnAllStores, Check::ReadElsewhere]);
    }
    if layout.regions.len() < 2 {
        skipped.push(Check::ScanPages);
    }
    skipped
}

#[tokio::test(start_paused = true)]
async fn the_simulated_cluster_conforms() {
    for (name, layout) in layouts() {
        for seed in 0..3 {
            println!("{name}, seed {seed}");
            let client = SimCluster::start(&layout, FaultPlan::none(), seed);
            conforms(&client, &expectation(&layout), &skipped_on(&layout)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_store_will_do() {
    let layout = Layout::generate(4, 40, 3, 5);
    let client = SimCluster::start(&layout, FaultPlan::none(), 5);
    for store in 1..=4 {
        let expected = Expectation {
            store: StoreId(store),
            ..expectation(&layout)
        };
        conforms(&client, &expected, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_expectation_is_found_out() {
    let layout = Layout::generate(3, 20, 3, 6);
    let client = SimCluster::start(&layout, FaultPlan::none(), 6);
    let right = expectation(&layout);
    let wrong = |expected: Expectation, check: Check| {
        let client = &client;
        async move { check.run(client, &expected).await.is_err() }
    };
    let fewer_stores = Expectation {
        stores: right.stores[1..].to_vec(),
        ..right.clone()
    };
    assert!(wrong(fewer_stores, Check::ListStores).await);
    for regions in [19, 21] {
        let expected = Expectation {
            regions,
            ..right.clone()
        };
        assert!(wrong(expected, Check::ScanTiles).await, "{regions}");
    }
    let unknown_store = Expectation {
        store: StoreId(9),
        ..right
    };
    assert!(wrong(unknown_store, Check::LeaseFirstThenRenewed).await);
}

#[cfg(feature = "tikv")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_grpc_client_conforms() {
    use snapshot_prepare::sim::server::Served;
    use snapshot_prepare::tikv::{Options, Security, TikvCluster};

    for (name, layout) in layouts() {
        println!("{name}");
        let listen = ([127, 0, 0, 1], 0).into();
        let served = Served::start(&layout, FaultPlan::none(), 7, listen)
            .await
            .expect("free ports");
        let endpoints = [served.pd_endpoint()];
        let client = TikvCluster::connect(endpoints, Security::none(), Options::default())
            .await
            .expect("connects");
        assert_eq!(client.cluster_id(), served.cluster_id());
        conforms(&client, &expectation(&layout), &skipped_on(&layout)).await;
        drop(client);
        served.shutdown().await;
    }
}

/// The storage of every store is of API version 1 with TTL, or 2: one of the two
/// reads without keys is refused there.
#[tokio::test(start_paused = true)]
async fn reads_are_served_by_every_api_version() {
    let layout = Layout::generate(3, 50, 3, 8);
    for mode in [StorageMode::V1, StorageMode::V1Ttl, StorageMode::V2] {
        let client = SimCluster::start(&layout, FaultPlan::none(), 8);
        for store in &layout.stores {
            client.with_model(|cluster| cluster.set_storage(store.id, mode));
        }
        conforms(&client, &expectation(&layout), &[]).await;
    }
}
