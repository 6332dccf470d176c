use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Running, Serve, program};

/// Returns whether a process is there and not just waiting to be buried.
fn lives(id: &str) -> bool {
    let path = Path::new("/proc").join(id.trim()).join("stat");
    fs::read_to_string(path).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with('Z')
    })
}

#[test]
fn a_lost_hold_stops_the_command_and_its_children() {
    let dir = tempfile::tempdir().expect("a directory");
    let (child, ready) = (dir.path().join("child"), dir.path().join("held"));
    let serve = Serve::start(&["--regions", "20"]);
    let script = format!(
        "sleep 1000 & echo $! > {path}.new && mv {path}.new {path}; wait",
        path = child.display()
    );
    let ready_path = ready.to_str().expect("plain");
    let args = [
        "run",
        "--pd",
        &serve.pd,
        "--lease",
        "5s",
        "--output",
        "json",
        "--ready-file",
        ready_path,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut running = Running::start(program(&args));
    running.wait_for_event("command");
    while !child.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let id = fs::read_to_string(&child).expect("there");
    assert!(lives(&id));
    serve.process.signal(Signal::KILL);
    let lost = running.wait_for_event("hold_lost");
    assert!(lost["store"].is_u64(), "{lost}");
    let finished = running.finish();
    let result = finished.assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], lost["cause"]);
    let left = result["unreleased"].as_array().expect("a list");
    assert_eq!(left.len(), 3, "{result}");
    assert!(!lives(&id), "the command's child is still there");
    assert!(!ready.exists());
    let exited = finished
        .events()
        .into_iter()
        .find(|line| line["status"] == "exited")
        .expect("the command's end");
    assert_eq!(exited["signal"], 15);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_with_its_children() {
    let dir = tempfile::tempdir().expect("a directory");
    let ids = dir.path().join("ids");
    let serve = Serve::start(&["--regions", "20"]);
    // What is ignored stays ignored in children.
    let script = format!(
        "trap '' TERM INT HUP; sleep 60 & echo $! $$ > {path}.new && mv {path}.new {path}; wait",
        path = ids.display()
    );
    let args = [
        "run", "--pd", &serve.pd, "--lease", "5s", "--output", "json", "--", "sh", "-c", &script,
    ];
    let mut running = Running::start(program(&args));
    running.wait_for_event("command");
    while !ids.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    serve.process.signal(Signal::KILL);
    let finished = running.finish();
    finished.assert_ended(11, "hold_lost");
    let events = finished.events();
    let exited = events.iter().find(|line| line["status"] == "exited");
    assert_eq!(exited.expect("the command's end")["signal"], 9);
    let ids = fs::read_to_string(&ids).expect("there");
    for id in ids.split_whitespace() {
        assert!(!lives(id), "{id} of {ids} is still there");
    }
}
