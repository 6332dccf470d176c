//! A backup tool in miniature: prepare, take the snapshots, finish.
//!
//! ```text
//! cargo run --example prepare -- 127.0.0.1:2379
//! ```

use std::error::Error;
use std::time::Duration;

use snapshot_prepare::driver::Preparer;
use snapshot_prepare::machine::Config;
use snapshot_prepare::tikv::{Options, Security, TikvCluster};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoints: Vec<String> = std::env::args().skip(1).collect();
    if endpoints.is_empty() {
        return Err("name at least one endpoint of PD, as host:port".into());
    }
    let cluster = TikvCluster::connect(endpoints, Security::none(), Options::default()).await?;
    let config = Config {
        prepare_timeout: Duration::from_secs(120),
        ..Config::default()
    };
    // Isolated: nothing below can delay the renewal of a lease.
    let preparer = Preparer::builder(cluster)
        .config(config)
        .isolated(true)
        .build()?;

    let mut progress = preparer.progress();
    tokio::spawn(async move {
        while progress.changed().await.is_ok() {
            let latest = *progress.borrow_and_update();
            println!(
                "{}: {} of {} stores leased, {} regions confirmed",
                latest.phase, latest.stores_leased, latest.stores, latest.regions_confirmed
            );
        }
    });

    // If this fails, the stores were released; the report names those that could
    // not be reached and says how long they may stay suspended.
    let guard = match preparer.prepare().await {
        Ok(guard) => guard,
        Err(error) => {
            for (store, left) in error.report().iter().flat_map(|report| report.unreleased()) {
                eprintln!("store {store} may stay suspended for {left:?}");
            }
            return Err(error.into());
        }
    };
    println!("held: {} regions", guard.report().regions);

    // The hold can be lost while the snapshots are taken: give up at once then.
    // Abort waits for the release, which would end with the process otherwise.
    let taken = tokio::select! {
        lost = guard.lost() => Err(lost.into()),
        taken = take_snapshots() => taken,
    };
    if let Err(error) = taken {
        guard.abort().await;
        return Err(error);
    }

    // Only this says that the snapshots fit together.
    match guard.finish().await {
        Ok(report) => {
            println!("good, suspended for {:?}", report.suspended_time);
            Ok(())
        }
        Err(error) => Err(format!("discard the snapshots: {error}").into()),
    }
}

/// Here the volumes of all stores would be snapshotted.
async fn take_snapshots() -> Result<(), Box<dyn Error>> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}
