//! The interval set against `rangemap` and a plain `BTreeMap`, in the orders in
//! which proofs arrive: `cargo bench --bench range_set`.

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use snapshot_prepare::range::KeyRange;
use support::ranges::{Order, ranges};
use support::sets;

type Insert = fn(&[KeyRange]) -> usize;

fn inserts(criterion: &mut Criterion) {
    for order in Order::ALL {
        for count in [100_000_u64, 1_000_000] {
            let ranges = ranges(count, order);
            let mut group = criterion.benchmark_group(format!("insert/{}", order.name()));
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            let contenders: [(&str, Insert); 3] = [
                ("ours", sets::ours),
                ("rangemap", sets::rangemap),
                ("btreemap", sets::plain),
            ];
            for (name, insert) in contenders {
                group.bench_with_input(BenchmarkId::new(name, count), &ranges, |bench, ranges| {
                    bench.iter(|| black_box(insert(black_box(ranges))));
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, inserts);
criterion_main!(benches);
