//! What the driver promises, against a small cluster that behaves unless told
//! otherwise. All but the isolated runs are on paused time.
#![cfg(feature = "driver")]

mod ending;
mod fake;
mod hold;
mod isolated;
mod preparing;
#[cfg(feature = "sim")]
mod simulated;

use std::time::Duration;

use snapshot_prepare::driver::{Clock, Preparer};
use snapshot_prepare::machine::Config;

use fake::FakeCluster;

fn config() -> Config {
    Config {
        lease: Duration::from_secs(20),
        prepare_timeout: Duration::from_secs(60),
        ..Config::default()
    }
}

fn preparer(cluster: &FakeCluster) -> Preparer<FakeCluster> {
    preparer_with(cluster, config())
}

fn preparer_with(cluster: &FakeCluster, config: Config) -> Preparer<FakeCluster> {
    Preparer::builder(cluster.clone())
        .config(config)
        .clock(Clock::Tokio)
        .build()
        .expect("a sound configuration")
}

/// Waits until all that the driver had spawned is gone.
async fn until_no_task_is_left() {
    while tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
        > 0
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
