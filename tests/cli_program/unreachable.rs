use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use snapshot_prepare::sim::fault::{FaultKind, FaultPlan};
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;

use crate::support::{Finished, run};

/// Starts a cluster of which one store is gone for good.
async fn start() -> Served {
    let layout = Layout::generate(3, 20, 3, 1);
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    // Every other seed lets the fault wait for a moment of the run; those are
    // passed over.
    for seed in 1..=50 {
        let plan = FaultPlan::none().with(FaultKind::StoreGone, 1);
        let served = Served::start(&layout, plan, seed, listen).await;
        let served = served.expect("listens");
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if served.with_model(|cluster| !cluster.strikes().is_empty()) {
                return served;
            }
        }
        served.shutdown().await;
    }
    panic!("no store is gone with any seed");
}

/// Runs the program against such a cluster. Returns what it left, and the
/// address of the store that it names.
fn with_a_store_gone(command: &str, more: &[&str]) -> (Finished, Value, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let served = runtime.block_on(start());
    let pd = served.pd_endpoint();
    let mut args = vec![command, "--pd", &pd, "--output", "json"];
    args.extend(more);
    let finished = run(&args);
    let result = finished.assert_ended(10, "not_prepared");
    let stores = served.stores().iter();
    let address = stores
        .filter(|store| result["store"] == store.id.0)
        .map(|store| store.address.clone())
        .next();
    let address = address.unwrap_or_else(|| panic!("no store is named: {result}"));
    let message = result["message"].as_str().expect("a message");
    let name = format!("store {}", result["store"]);
    for part in [&name, &address, "connect"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    runtime.shutdown_background();
    (finished, result, address)
}

#[test]
fn a_store_that_cannot_be_dialed_keeps_everybody_from_being_suspended() {
    let more = ["--prepare-timeout", "2s", "--", "true"];
    let (finished, result, _) = with_a_store_gone("run", &more);
    assert!(!finished.phases().contains(&"suspend".to_owned()));
    assert_eq!(result["unreleased"], serde_json::json!([]));
    assert!(result["suspended_ms"].is_null());
    assert!(finished.event("command").is_none());
}

#[test]
fn check_names_a_store_that_cannot_be_dialed() {
    let (finished, result, address) = with_a_store_gone("check", &[]);
    assert_eq!(result["kind"], "unreachable");
    let store = finished
        .events()
        .into_iter()
        .find(|line| line["address"] == address)
        .expect("told");
    assert!(store["leaders"].is_null() && store["supported"].is_null());
}
