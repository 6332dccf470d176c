//! The machine alone, from the first event to the hold, for clusters of different
//! sizes: `cargo bench --bench machine`. Regions are made up as they are asked
//! for, so that only the machine's own cost is in it; the largest size takes
//! minutes and about a gigabyte.

mod support;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use support::feed::{Cluster, hold};

const STORES: u64 = 10;

fn holds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("machine");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for regions in [10_000, 100_000, 1_000_000, 10_000_000] {
        let cluster = Cluster {
            stores: STORES,
            regions,
        };
        group.throughput(Throughput::Elements(regions));
        group.bench_with_input(BenchmarkId::new("hold", regions), &cluster, |bench, of| {
            bench.iter_with_large_drop(|| hold(*of));
        });
    }
    group.finish();
}

criterion_group!(benches, holds);
criterion_main!(benches);
