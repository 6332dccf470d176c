use crate::support::run;

const LAYOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/regions.json");

#[test]
fn a_demo_prepares_holds_and_releases() {
    let finished = run(&[
        "demo",
        "--regions",
        "60",
        "--hold",
        "100ms",
        "--seed",
        "5",
        "--output",
        "json",
    ]);
    let result = finished.assert_ended(0, "ok");
    assert_eq!(
        finished.phases(),
        [
            "connect",
            "suspend",
            "wait_apply",
            "verify",
            "hold",
            "release",
            "closed"
        ]
    );
    let held = finished.event("held").expect("held");
    assert_eq!(held["stores"], 3);
    assert_eq!(held["regions"], 60);
    assert_eq!(held["proof"], "read");
    assert_eq!(held["attempt"], 1);
    assert!(held["tso"].as_u64().is_some_and(|tso| tso > 1 << 18));
    assert_eq!(result["released"], serde_json::json!([1, 2, 3]));
    assert_eq!(result["unreleased"], serde_json::json!([]));
    assert!(result["prepare_ms"].is_u64() && result["suspended_ms"].is_u64());
    assert!(result["kind"].is_null() && result["message"].is_null());
    let timing = &result["timing"];
    let phases: Vec<_> = timing["phases"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = phases.iter().map(|it| it["phase"].clone()).collect();
    assert_eq!(names, ["connect", "suspend", "wait_apply", "verify"]);
    assert!(phases.iter().all(|it| it["ms"].is_u64()), "{timing}");
    for (name, least) in [("waits", 60), ("reads", 60), ("listings", 9)] {
        let count = timing[name].as_u64();
        assert!(count.is_some_and(|count| count >= least), "{timing}");
    }
    assert_eq!(timing["slowest_stores"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_demo_tells_people_what_happens() {
    let finished = run(&["demo", "--regions", "60", "--hold", "100ms"]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let text = finished.lines.join("\n");
    for part in [
        "connect",
        "held: 3 stores, 60 regions",
        "release",
        "ok: the hold lasted",
        "stores suspended for",
        "slowest stores:",
        "until the hold: connect",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert_eq!(finished.stderr, "");
}

#[test]
fn a_dump_becomes_a_cluster() {
    let finished = run(&["demo", "--layout", LAYOUT, "--output", "json", "--", "true"]);
    finished.assert_ended(0, "ok");
    let serving = finished.event("serving").expect("serving");
    let held = finished.event("held").expect("held");
    assert_eq!(held["regions"], serving["regions"]);
}

#[test]
fn a_hold_by_claims_says_what_it_rests_on() {
    let args = [
        "demo",
        "--regions",
        "20",
        "--hold",
        "10ms",
        "--proof",
        "claims",
    ];
    let text = run(&args).lines.join("\n");
    assert!(text.contains("assumption that no leader"), "{text}");
    let json: Vec<&str> = args.iter().copied().chain(["--output", "json"]).collect();
    let finished = run(&json);
    finished.assert_ended(0, "ok");
    assert_eq!(finished.event("held").expect("held")["proof"], "claims");
}
