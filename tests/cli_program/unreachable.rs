use std::net::SocketAddr;

use snapshot_prepare::region::StoreId;
use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;

use crate::support::{Finished, run};

/// Nobody listens there.
const NOWHERE: &str = "127.0.0.1:1";

/// Runs the program against a cluster of which store 2 cannot be dialed.
fn with_a_store_gone(args: &[&str]) -> Finished {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let served = runtime.block_on(async {
        let layout = Layout::generate(3, 20, 3, 1);
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let served = Served::start(&layout, FaultPlan::none(), 1, listen).await;
        served.expect("listens")
    });
    served.with_model(|cluster| cluster.set_address(StoreId(2), NOWHERE));
    let pd = served.pd_endpoint();
    let mut all = vec![args[0], "--pd", &pd, "--output", "json"];
    all.extend(&args[1..]);
    let finished = run(&all);
    runtime.shutdown_background();
    finished
}

#[test]
fn a_store_that_cannot_be_dialed_keeps_everybody_from_being_suspended() {
    let finished = with_a_store_gone(&["run", "--prepare-timeout", "2s", "--", "true"]);
    let result = finished.assert_ended(10, "not_prepared");
    assert_eq!(result["store"], 2, "{result}");
    let message = result["message"].as_str().expect("a message");
    for part in ["store 2", NOWHERE, "refused"] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    assert!(!finished.phases().contains(&"suspend".to_owned()));
    assert_eq!(result["unreleased"], serde_json::json!([]));
    assert!(result["suspended_ms"].is_null());
    assert!(finished.event("command").is_none());
}

#[test]
fn check_names_a_store_that_cannot_be_dialed() {
    let finished = with_a_store_gone(&["check"]);
    let result = finished.assert_ended(10, "not_prepared");
    assert_eq!(result["store"], 2);
    assert_eq!(result["kind"], "unreachable");
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains(NOWHERE), "{message}");
}
