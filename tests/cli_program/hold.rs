use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, Serve, program, run};

const SMALL: [&str; 5] = ["demo", "--regions", "20", "--output", "json"];

fn demo(more: &[&str]) -> crate::support::Finished {
    let args: Vec<&str> = SMALL.iter().chain(more).copied().collect();
    run(&args)
}

#[test]
fn a_failing_command_ends_in_20_with_the_stores_released() {
    let finished = demo(&["--", "sh", "-c", "exit 7"]);
    let result = finished.assert_ended(20, "command_failed");
    assert_eq!(result["released"], serde_json::json!([1, 2, 3]));
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains('7'), "{message}");
    let exited = finished
        .events()
        .into_iter()
        .find(|line| line["status"] == "exited")
        .expect("the command's end");
    assert_eq!(exited["code"], 7);
    assert!(exited["signal"].is_null());
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let finished = demo(&["--", "/there/is/no/command"]);
    let result = finished.assert_ended(20, "command_failed");
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains("/there/is/no/command"), "{message}");
    assert!(finished.event("command").is_none());
}

#[test]
fn the_commands_output_goes_to_standard_error() {
    let finished = demo(&["--", "echo", "from the command"]);
    finished.assert_ended(0, "ok");
    assert!(
        finished.stderr.contains("from the command"),
        "{finished:#?}"
    );
}

#[test]
fn the_command_knows_what_is_held() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("environment");
    let script = format!("env > {}", file.display());
    let finished = demo(&["--", "sh", "-c", &script]);
    finished.assert_ended(0, "ok");
    let text = fs::read_to_string(&file).expect("written");
    let value = |name: &str| -> String {
        let start = format!("SNAPSHOT_PREPARE_{name}=");
        let line = text.lines().find(|line| line.starts_with(&start));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))[start.len()..].to_owned()
    };
    let held = finished.event("held").expect("held");
    assert_eq!(value("CLUSTER_ID"), held["cluster_id"].to_string());
    assert_eq!(value("TSO"), held["tso"].to_string());
    assert_eq!(Value::from(value("HELD_AT")), held["at"]);
    let serving = finished.event("serving").expect("serving");
    let stores: Vec<String> = serving["stores"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|store| {
            format!(
                "{}={}",
                store["id"],
                store["address"].as_str().expect("text")
            )
        })
        .collect();
    assert_eq!(value("STORES"), stores.join(","));
}

#[test]
fn the_ready_file_lives_as_long_as_the_hold() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("held");
    fs::write(&file, "left by an earlier run").expect("written");
    let serve = Serve::start(&["--regions", "20"]);
    let path = file.to_str().expect("plain");
    let args = [
        "run",
        "--pd",
        &serve.pd,
        "--ready-file",
        path,
        "--output",
        "json",
    ];
    let mut running = Running::start(program(&args));
    running.wait_for_phase("connect");
    assert!(!file.exists(), "the old one is still there");
    let held = running.wait_for_event("held");
    let content = fs::read_to_string(&file).expect("there");
    assert_eq!(serde_json::from_str::<Value>(&content).expect("JSON"), held);
    running.signal(Signal::TERM);
    // Without a command a signal is how a hold ends.
    running.finish().assert_ended(0, "ok");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn a_configuration_error_removes_an_old_ready_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("held");
    fs::write(&file, "left by an earlier run").expect("written");
    let path = file.to_str().expect("plain");
    demo(&["--ready-file", path, "--lease", "4s"]).assert_ended(2, "error");
    assert!(!file.exists());
    // With a lock it may be the file of whoever has it.
    let lock = format!("file://{}/lock", dir.path().display());
    for (more, stays) in [(vec![], false), (vec!["--lock", &lock], true)] {
        fs::write(&file, "left by an earlier run").expect("written");
        let args = ["run", "--pd", "127.0.0.1:1", "--output", "json"];
        let wrong = ["--lease", "4s", "--ready-file", path];
        let args = [&args[..], &wrong[..], &more[..]].concat();
        run(&args).assert_ended(2, "error");
        assert_eq!(file.exists(), stays, "{more:?}");
    }
}

#[test]
fn two_runs_are_never_both_good_with_overlapping_holds() {
    let serve = Serve::start(&["--regions", "40"]);
    let args = [
        "run",
        "--pd",
        &serve.pd,
        "--output",
        "json",
        "--prepare-timeout",
        "20s",
        "--",
        "sleep",
        "1",
    ];
    let both = [(); 2].map(|()| Running::start(program(&args)));
    let mut holds: Vec<(String, String)> = Vec::new();
    for running in both {
        let finished = running.finish();
        let result = finished.result();
        assert!(
            [0, 10, 11].contains(&finished.code.expect("a code")),
            "{finished:#?}"
        );
        if result["outcome"] == "ok" {
            let at = |line: &Value| line["at"].as_str().expect("a time").to_owned();
            let events = finished.events();
            let released = events.iter().rfind(|line| line["phase"] == "release");
            let held = finished.event("held").expect("held");
            holds.push((at(&held), at(released.expect("released"))));
        }
    }
    // All times are UTC in one form, so they compare as text.
    if let [(held_1, released_1), (held_2, released_2)] = holds.as_slice() {
        assert!(released_1 <= held_2 || released_2 <= held_1, "{holds:?}");
    }
}
