use rustix::process::Signal;

use crate::support::{Running, Serve, program, run};

#[test]
fn check_says_that_a_run_could_start() {
    let serve = Serve::start(&["--regions", "50", "--stores", "4"]);
    let finished = run(&[
        "check",
        "--pd",
        &serve.pd,
        "--page-size",
        "7",
        "--output",
        "json",
    ]);
    finished.assert_ended(0, "ok");
    let cluster = finished.event("cluster").expect("what was seen");
    assert_eq!(cluster["stores"], 4);
    assert_eq!(cluster["regions"], 50);
    assert_eq!(cluster["regions_by_pd"], 50);
    assert_eq!(cluster["gaps"], 0);
    assert_eq!(cluster["problems"], serde_json::json!([]));
    let stores: Vec<_> = finished
        .events()
        .into_iter()
        .filter(|line| line["event"] == "store")
        .collect();
    assert_eq!(stores.len(), 4);
    let led: u64 = stores
        .iter()
        .filter_map(|store| store["leaders"].as_u64())
        .sum();
    assert_eq!(led, 50);
    for store in &stores {
        assert_eq!(store["supported"], true, "{store}");
        assert_ne!(store["version"], "", "{store}");
        let age = store["heartbeat_age_s"].as_u64().expect("told");
        assert!(age < 3_600, "by this machine's clock: {store}");
    }
}

#[test]
fn check_disturbs_no_hold() {
    let serve = Serve::start(&["--regions", "20"]);
    let args = ["run", "--pd", &serve.pd, "--output", "json"];
    let mut running = Running::start(program(&args));
    running.wait_for_event("held");
    let text = run(&["check", "--pd", &serve.pd]);
    assert_eq!(text.code, Some(0), "{text:#?}");
    let lines = text.lines.join("\n");
    assert!(lines.contains("a run could start now"), "{lines}");
    running.signal(Signal::INT);
    running.finish().assert_ended(0, "ok");
}
