//! The machine alone: processor time per region from small to large clusters,
//! and memory per region.

use snapshot_prepare::machine::Machine;
use snapshot_prepare::region::StoreId;

use super::{Budget, is_full};
use crate::support::cpu::timed;
use crate::support::feed::{Cluster, hold, hold_though_refused};
use crate::{ALLOCATED, support::ranges};

const STORES: u64 = 10;
/// Clusters whose cost per region is compared; the first is run as often as it
/// takes to have as many regions as the others.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// What `BUDGETS_FULL=1` adds.
const LARGEST: u64 = 10_000_000;

fn cluster(regions: u64) -> Cluster {
    Cluster {
        stores: STORES,
        regions,
    }
}

/// Returns the seconds per region, at the least of three rounds.
fn per_region(regions: u64, hold: impl Fn(Cluster) -> Machine) -> f64 {
    let runs = (300_000 / regions).max(1);
    let least = (0..3)
        .map(|_| {
            let work = || (0..runs).for_each(|_| drop(hold(cluster(regions))));
            timed(work).1
        })
        .min();
    least.unwrap_or_default().as_secs_f64() / (runs * regions) as f64
}

/// The cost per region of the costliest size against the cheapest.
fn flatness(what: &str, sizes: &[u64], hold: impl Fn(Cluster) -> Machine) -> f64 {
    let sizes = sizes.iter();
    let costs = sizes.map(|regions| {
        let cost = per_region(*regions, &hold);
        println!("{what}, {regions} regions: {:.0} ns each", cost * 1e9);
        cost
    });
    let costs: Vec<f64> = costs.collect();
    let most = costs.iter().copied().fold(0.0, f64::max);
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    most / least
}

/// The most memory that a run takes at any time, per region.
pub(crate) fn memory(regions: u64) -> Budget {
    assert_eq!(ranges::key(1).as_bytes().len(), 30);
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let machine = hold(cluster(regions));
    let most = ALLOCATED.peak_usage().saturating_sub(before);
    drop(machine);
    Budget::exact("memory_per_region", most as f64 / regions as f64, 80.0)
}

pub(crate) fn measure() -> Vec<Budget> {
    let mut sizes = SIZES.to_vec();
    sizes.extend(is_full().then_some(LARGEST));
    let at_rest = flatness("machine", &sizes, hold);
    // All that one of ten stores leads fails once, at the same time.
    let refused = |cluster| hold_though_refused(cluster, StoreId(1));
    let refused = flatness("machine, one store refuses", &SIZES, refused);
    vec![
        memory(1_000_000),
        Budget::timed("machine_flat", at_rest, 1.5),
        Budget::timed("machine_refused_flat", refused, 2.0),
    ]
}
