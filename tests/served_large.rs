//! The whole stack against the served cluster; with many regions on one store run
//! by hand:
//! `cargo test --test served_large -- --ignored --nocapture`.
#![cfg(all(feature = "sim", feature = "tikv", feature = "driver"))]

use std::time::Instant;

use snapshot_prepare::driver::Preparer;
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;
use snapshot_prepare::tikv::{Options, Security, TikvCluster};

async fn hold(layout: &Layout) {
    let start = Instant::now();
    let served = Served::start(layout, FaultPlan::none(), 3, ([127, 0, 0, 1], 0).into())
        .await
        .expect("free ports");
    let client = TikvCluster::connect([served.pd_endpoint()], Security::none(), Options::default())
        .await
        .expect("connects");
    println!("served after {:?}", start.elapsed());
    let preparer = Preparer::builder(client)
        .build()
        .expect("a sound configuration");
    let guard = preparer.prepare().await.expect("holds");
    println!("held after {:?}: {:?}", start.elapsed(), guard.report());
    let report = guard.finish().await.expect("a good verdict");
    println!("finished after {:?}: {report:?}", start.elapsed());
    served.shutdown().await;
    println!("shut down after {:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_usual_number_of_regions() {
    hold(&Layout::generate(6, 600, 3, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "large"]
async fn many_regions_on_one_store() {
    let regions = std::env::var("REGIONS").map_or(40_000, |n| n.parse().expect("a number"));
    hold(&Layout::generate(1, regions, 1, 1)).await;
}
