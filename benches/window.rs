//! What a window costs the stores and the standstill, in virtual time:
//! `cargo bench --bench window`. The figures are the same on any machine.

mod support;

use support::feed::Cluster;
use support::loaded::{Apply, cost};

const STORES: u64 = 4;
const WINDOWS: [u32; 9] = [8, 32, 128, 256, 512, 1024, 4096, 16_384, 65_536];

fn main() {
    for (apply, regions) in [(Apply::Soon, 100_000), (Apply::InTurn, 80_000)] {
        println!("{regions} regions on {STORES} stores, applied {apply:?}");
        let cluster = Cluster {
            stores: STORES,
            regions,
        };
        for window in WINDOWS {
            let cost = cost(cluster, apply, window);
            println!(
                "window {window:>6}: proven after {:>6.2} s, a store's stream thread {:>6.1} us for each region",
                cost.proving.as_secs_f64(),
                cost.stream_thread.as_secs_f64() * 1e6
            );
        }
    }
}
