//! For how long the stores of a model cluster with light faults are suspended, by
//! this crate's machine and by a coordinator that works in rounds:
//! `cargo bench --features sim --bench standstill`. What is told is virtual time,
//! the same on any machine; each iteration is the next seed. The floor is the
//! least possible of the machine's runs.

mod support;

use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use support::standstill::{Seed, run_seed};

type Of = fn(&Seed) -> Option<Duration>;

fn standstills(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("standstill");
    group.sampling_mode(SamplingMode::Flat).sample_size(100);
    let sides: [(&str, Of); 3] = [
        ("floor", |seed| Some(seed.ours?.floor)),
        ("machine", |seed| Some(seed.ours?.took)),
        ("rounds", |seed| Some(seed.theirs?.suspended)),
    ];
    for (name, of) in sides {
        group.bench_function(name, |bench| {
            let mut seeds = 1..;
            bench.iter_custom(|runs| {
                // Those in which it came to a good hold at once both ways.
                let good = seeds.by_ref().map(run_seed).filter(Seed::is_good);
                let taken = good.filter_map(|seed| of(&seed)).take(runs as usize);
                taken.sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, standstills);
criterion_main!(benches);
