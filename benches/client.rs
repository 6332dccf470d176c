//! The whole client over loopback gRPC, and clients that send the same waits and
//! reads and only count the answers: `cargo bench --features sim --bench client`.
//! The server is a process of its own. What is told is not the time on the wall
//! but the processor time of the client's process.

mod support;

use std::process::ExitCode;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use support::client::Target;
use support::cpu::timed_process;
use support::server::{Server, Size, serve_if_asked};

const SIZE: Size = Size {
    stores: 3,
    regions: 10_000,
};
const WINDOW: u32 = 512;

fn clients(criterion: &mut Criterion) {
    let server = Server::start(SIZE);
    let target = Target::new(&server.pd, SIZE.layout(), WINDOW);
    let clients: [(&str, &dyn Fn()); 3] = [
        ("whole", &|| target.prepare()),
        ("counting", &|| target.count()),
        ("counting_and_listing", &|| target.count_and_list()),
    ];
    let mut group = criterion.benchmark_group("client");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.throughput(Throughput::Elements(SIZE.regions.into()));
    for (name, client) in clients {
        group.bench_function(name, |bench| {
            bench.iter_custom(|times| {
                let runs = (0..times).map(|_| timed_process(client));
                runs.sum::<Duration>()
            });
        });
    }
    group.finish();
}

fn main() -> ExitCode {
    if let Some(code) = serve_if_asked() {
        return code;
    }
    let mut criterion = Criterion::default().configure_from_args();
    clients(&mut criterion);
    criterion.final_summary();
    ExitCode::SUCCESS
}
