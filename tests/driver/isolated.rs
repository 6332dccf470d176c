use std::sync::mpsc;
use std::time::Duration;

use snapshot_prepare::driver::Preparer;
use snapshot_prepare::machine::Config;
use snapshot_prepare::progress::PhaseName;

use crate::fake::FakeCluster;

/// Longer than any of this takes, so that a hang ends the test.
const LONG: Duration = Duration::from_secs(60);

fn isolated(cluster: &FakeCluster) -> Preparer<FakeCluster> {
    Preparer::builder(cluster.clone())
        .config(Config {
            lease: Duration::from_secs(5),
            ..Config::default()
        })
        .isolated(true)
        .build()
        .expect("a sound configuration")
}

/// A logger that, once told, never returns from a call.
struct StuckLogger(std::sync::Arc<std::sync::RwLock<()>>);

impl tracing::Subscriber for StuckLogger {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        drop(self.0.read());
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        drop(self.0.read());
    }

    fn enter(&self, _: &tracing::span::Id) {
        drop(self.0.read());
    }

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_blocked_program_does_not_delay_renewals() {
    let stuck = std::sync::Arc::new(std::sync::RwLock::new(()));
    let _logger = tracing::subscriber::set_default(StuckLogger(std::sync::Arc::clone(&stuck)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let cluster = FakeCluster::new(3, 30);
    runtime.block_on(async {
        let preparer = isolated(&cluster);
        let progress = preparer.progress();
        let guard = preparer.prepare().await.expect("held");
        let before = cluster.each(|store| store.renewals());

        // The only thread of this runtime waits, with the progress borrowed and
        // the logger stuck, for renewals of every store.
        let blocked_logger = stuck.write().expect("no panic");
        let borrowed = progress.borrow();
        let (seen, renewed) = mpsc::channel();
        let watched = cluster.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime");
            let mut least = before.iter().map(|count| count + 3);
            let least = least.next().expect("a store");
            runtime.block_on(watched.until_each(|store| store.renewals() >= least));
            seen.send(()).expect("listening");
        });
        renewed.recv_timeout(LONG).expect("renewed");
        drop(borrowed);
        drop(blocked_logger);

        guard.finish().await.expect("a good verdict");
        let mut progress = progress;
        tokio::time::timeout(
            LONG,
            progress.wait_for(|latest| latest.phase == PhaseName::Closed),
        )
        .await
        .expect("in time")
        .expect("told before the end");
    });
    assert_eq!(cluster.each(|store| store.finishes()), [1, 1, 1]);
}

#[test]
fn an_isolated_hold_is_released_though_its_runtime_is_gone() {
    let cluster = FakeCluster::new(2, 10);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let guard = runtime
        .block_on(isolated(&cluster).prepare())
        .expect("held");
    drop(runtime);
    drop(guard);
    let watcher = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    watcher.block_on(async {
        tokio::time::timeout(LONG, cluster.until_each(|store| store.finishes() == 1))
            .await
            .expect("released");
    });
}

#[test]
fn a_shared_driver_that_goes_with_its_runtime_loses_the_hold() {
    let cluster = FakeCluster::new(2, 10);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let preparer = Preparer::builder(cluster.clone()).build().expect("sound");
    let guard = runtime.block_on(preparer.prepare()).expect("held");
    drop(runtime);
    let internal = snapshot_prepare::error::ErrorKind::Internal;
    assert_eq!(guard.ensure_valid().expect_err("gone").kind(), internal);
    let other = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    assert_eq!(other.block_on(guard.lost()).kind(), internal);
    let error = other.block_on(guard.finish()).expect_err("a bad verdict");
    assert_eq!(error.kind(), internal);
    assert_eq!(error.report().unreleased().count(), 2);
}
