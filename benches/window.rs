//! What a window costs the stores and the standstill, in virtual time:
//! `cargo bench --bench window`. The figures are the same on any machine.

mod support;

use support::feed::Cluster;
use support::loaded::cost;

const CLUSTER: Cluster = Cluster {
    stores: 4,
    regions: 100_000,
};

fn main() {
    println!(
        "{} regions on {} stores; proving, and each store's stream thread",
        CLUSTER.regions, CLUSTER.stores
    );
    for window in [
        8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16_384, 65_536,
    ] {
        let cost = cost(CLUSTER, window);
        println!(
            "window {window:>6}: {:>8.2} s {:>8.1} us for each region",
            cost.proving.as_secs_f64(),
            cost.stream_thread.as_secs_f64() * 1e6
        );
    }
}
