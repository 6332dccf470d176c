//! Many runs in virtual time, one as a story, and what is violated.

use serde_json::{Value, json};

use crate::support::{Finished, run};

fn simulate(args: &[&str]) -> Finished {
    let mut all = vec!["simulate"];
    all.extend(args);
    run(&all)
}

fn simulate_json(args: &[&str]) -> Finished {
    let mut all = args.to_vec();
    all.extend(["--output", "json"]);
    simulate(&all)
}

/// A hold by claims alone, and what deceives it.
const DECEIVED: [&str; 13] = [
    "--proof",
    "claims",
    "--only",
    "lost_quorum,pd_lag",
    "--fault",
    "lost_quorum=4,pd_lag=4",
    "--stores",
    "3",
    "--regions",
    "1..6",
    "--seeds",
    "1..1200",
    "--threads=2",
];

#[test]
fn seeds_are_simulated() {
    let finished = simulate_json(&["--seeds", "1..4", "--faults", "light"]);
    finished.assert_ended(0, "ok");
    let simulated = finished.event("simulated").expect("a summary");
    assert_eq!(simulated["seeds"], 4);
    assert_eq!(simulated["violations"], json!([]));
    assert_eq!(simulated["hash"].as_str().expect("a hash").len(), 16);
    assert!(simulated["wall_ms"].is_u64(), "{simulated}");
    let standstill = &simulated["standstill"];
    for name in ["median", "p99", "worst"] {
        assert!(standstill[name].as_f64() >= Some(1.0), "{simulated}");
    }
    assert!(simulated["faults"]["write"].is_object(), "{simulated}");
}

#[test]
fn the_table_tells_outcomes_faults_and_times() {
    let finished = simulate(&["--seeds", "1+5", "--faults", "light"]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let text = finished.lines.join("\n");
    for part in [
        "5 runs, 5 with a hold",
        "finished ",
        "100.00 %",
        "faults that struck",
        "wait_apply",
        "against the floor",
        "hash of all runs: ",
        "5 runs took ",
        "ok: no property was violated",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert_eq!(finished.stderr, "");
}

#[test]
fn the_hash_is_of_the_runs_not_of_the_threads() {
    let hash = |args: &[&str]| {
        let finished = simulate_json(args);
        finished.assert_ended(0, "ok");
        finished.event("simulated").expect("a summary")["hash"].clone()
    };
    let one = hash(&["--seeds", "1..12", "--threads", "1"]);
    assert_eq!(one, hash(&["--seeds", "1..12", "--threads", "3"]));
    assert_ne!(one, hash(&["--seeds", "1..11"]));
    assert_ne!(one, hash(&["--seeds", "1..12", "--faults", "light"]));
}

#[test]
fn single_faults_are_switched_by_name() {
    let finished = simulate_json(&[
        "--seeds",
        "1..6",
        "--only",
        "write,split",
        "--without",
        "split",
        "--fault",
        "merge=2",
    ]);
    finished.assert_ended(0, "ok");
    let simulated = finished.event("simulated").expect("a summary");
    let faults = simulated["faults"].as_object().expect("a map");
    let struck: Vec<&str> = faults.keys().map(String::as_str).collect();
    assert_eq!(struck, ["merge", "write"]);
}

#[test]
fn the_sizes_are_those_that_were_asked_for() {
    let finished = simulate_json(&[
        "--trace",
        "3",
        "--faults",
        "none",
        "--stores",
        "4",
        "--regions",
        "500",
    ]);
    finished.assert_ended(0, "ok");
    let setup = finished.event("setup").expect("a setup")["setup"].clone();
    let setup = setup.as_str().expect("text");
    assert!(setup.contains("stores=4 regions=500"), "{setup}");
}

#[test]
fn the_faults_are_listed_with_what_they_do() {
    let finished = simulate(&["--list-faults"]);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let text = finished.lines.join("\n");
    assert!(
        text.contains("half_open          A stream swallows"),
        "{text}"
    );
    let finished = simulate_json(&["--list-faults"]);
    finished.assert_ended(0, "ok");
    let faults = finished.events();
    let faults = faults.iter().filter(|line| line["event"] == "fault");
    for fault in faults {
        let about = fault["about"].as_str().expect("text");
        assert!(about.ends_with('.') && !about.starts_with(' '), "{fault}");
    }
}

#[test]
fn a_trace_is_a_story_with_a_judgement() {
    let args = ["--trace", "7", "--faults", "light", "--regions", "50..60"];
    let finished = simulate(&args);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    let text = finished.lines.join("\n");
    for part in [
        "seed 7: stores=",
        "== connect, attempt 1",
        "-> PD: list all stores",
        "<- stores ",
        "leased",
        "served the read",
        "** HELD: ",
        "asks for the end",
        "released",
        "ended: finished",
        "judgement: no property was violated",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // Similar steps are one line.
    assert!(finished.lines.len() < 120, "{} lines", finished.lines.len());
    assert!(!text.contains("(keys "), "{text}");
}

#[test]
fn a_trace_has_a_line_of_json_for_each_step() {
    let finished = simulate_json(&["--trace", "7", "--faults", "light"]);
    finished.assert_ended(0, "ok");
    let events = finished.events();
    let steps: Vec<&Value> = events
        .iter()
        .filter(|line| line["event"] == "step")
        .collect();
    let kinds: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["kind"].as_str())
        .collect();
    for kind in ["phase", "sent", "answered", "note"] {
        assert!(kinds.contains(&kind), "no {kind} among {kinds:?}");
    }
    let times: Vec<u64> = steps
        .iter()
        .filter_map(|step| step["run_us"].as_u64())
        .collect();
    assert_eq!(times.len(), steps.len());
    let simulated = finished.event("simulated").expect("a summary");
    assert_eq!(simulated["seeds"], 1);
}

#[test]
fn keys_are_shown_on_request_only() {
    let args = ["--trace", "7", "--faults", "light", "--regions", "20..30"];
    let scans = |finished: Finished| {
        let mut lines = finished.lines.into_iter();
        lines.find(|line| line.contains("PD: describe regions"))
    };
    // A run that asks PD for regions; not every one has to.
    for seed in 1..200 {
        let seed = seed.to_string();
        let mut args = args;
        args[1] = &seed;
        let Some(hidden) = scans(simulate(&args)) else {
            continue;
        };
        assert!(!hidden.contains('['), "{hidden}");
        let mut shown = args.to_vec();
        shown.push("--show-keys");
        let shown = scans(simulate(&shown)).expect("the same run");
        assert!(shown.contains('['), "{shown}");
        return;
    }
    panic!("no run asks PD for regions");
}

/// What the program does when a property is violated, shown with the weaker
/// proof, which is known to be deceived by a leader that is cut off.
#[test]
fn a_violation_tells_all_and_its_command_does_it_again() {
    let finished = simulate_json(&DECEIVED);
    let result = finished.assert_ended(1, "error");
    assert_eq!(result["kind"], "oracle");
    let simulated = finished.event("simulated").expect("a summary");
    assert!(simulated["violated"].as_u64() > Some(0), "{simulated}");
    let problem = &simulated["violations"][0];
    assert!(
        problem["setup"]
            .as_str()
            .expect("text")
            .contains("lost_quorum=4")
    );
    let steps = problem["steps"].as_array().expect("a list");
    let held = |step: &Value| step.as_str().is_some_and(|step| step.contains("HELD"));
    assert!(steps.iter().any(held), "{problem}");

    let replay = problem["replay"].as_str().expect("text");
    let args: Vec<&str> = replay.split(' ').skip(1).collect();
    let again = run(&args);
    assert_eq!(again.code, Some(1), "{replay}: {again:#?}");
    let text = again.lines.join("\n");
    for violation in problem["violations"].as_array().expect("a list") {
        let violation = violation.as_str().expect("text");
        assert!(
            text.contains(violation),
            "{replay}: no {violation} in {text}"
        );
    }
    assert!(text.contains(&format!("replay: {replay}")), "{text}");
    assert!(again.stderr.contains("violated a property"), "{again:#?}");

    let story: Vec<&str> = replay.split(' ').skip(1).collect();
    let story: Vec<&str> = story
        .into_iter()
        .map(|arg| if arg == "--seeds" { "--trace" } else { arg })
        .collect();
    let told = run(&story);
    assert_eq!(told.code, Some(1), "{told:#?}");
    let text = told.lines.join("\n");
    assert!(text.contains("judgement: VIOLATED: "), "{text}");
}
