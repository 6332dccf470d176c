use rustix::process::Signal;

use crate::support::{Running, Serve, program};

fn demo(more: &[&str]) -> Running {
    let mut args = vec!["demo", "--output", "json"];
    args.extend(more);
    Running::start(program(&args))
}

#[test]
fn a_signal_while_preparing_releases_every_store() {
    for signal in [Signal::TERM, Signal::INT] {
        // So many that the wait is not over when the signal comes.
        let mut running = demo(&["--regions", "20000", "--seed", "3"]);
        running.wait_for_phase("wait_apply");
        running.signal(signal);
        let finished = running.finish();
        let result = finished.assert_ended(13, "cancelled");
        assert_eq!(result["released"], serde_json::json!([1, 2, 3]));
        assert_eq!(result["unreleased"], serde_json::json!([]));
        let message = result["message"].as_str().expect("a message");
        let name = if signal == Signal::INT {
            "SIGINT"
        } else {
            "SIGTERM"
        };
        assert_eq!(message, format!("{name} came before the hold began"));
        assert!(finished.event("held").is_none());
        assert!(result["prepare_ms"].is_null());
    }
}

#[test]
fn a_signal_while_pd_is_not_there_ends_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("held");
    std::fs::write(&file, "left by an earlier run").expect("written");
    let path = file.to_str().expect("plain");
    // Nobody listens on port 1.
    let args = [
        "run",
        "--pd",
        "127.0.0.1:1",
        "--ready-file",
        path,
        "--output",
        "json",
    ];
    let running = Running::start(program(&args));
    // The old file goes when the program has taken signals over.
    while file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let result = running.finish().assert_ended(13, "cancelled");
    assert_eq!(result["unreleased"], serde_json::json!([]));
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    // The shell's child can miss a signal that comes before it is a program of its
    // own, and keeps the output open as long as it lives: not for long.
    let script = "trap 'exit 3' TERM; echo ready >&2; sleep 5 & wait";
    let mut running = demo(&["--regions", "20", "--", "sh", "-c", script]);
    running.wait_for_event("command");
    // The trap may not be set yet; then the shell dies of the signal.
    running.signal(Signal::TERM);
    let finished = running.finish();
    let result = finished.assert_ended(13, "cancelled");
    assert_eq!(result["released"], serde_json::json!([1, 2, 3]));
    let exited = finished
        .events()
        .into_iter()
        .find(|line| line["status"] == "exited")
        .expect("the command's end");
    assert!(exited["code"] == 3 || exited["signal"] == 15, "{exited}");
}

/// Stores that do not answer are not waited for longer than the user wants to;
/// the lock is released all the same.
#[test]
fn further_signals_end_a_release_that_is_not_answered() {
    let dir = tempfile::tempdir().expect("a directory");
    let lock = format!("file://{}/", dir.path().display());
    let serve = Serve::start(&["--regions", "20"]);
    let args = [
        "run", "--pd", &serve.pd, "--lock", &lock, "--output", "json",
    ];
    let mut running = Running::start(program(&args));
    running.wait_for_event("held");
    serve.process.freeze();
    // The first ends the hold, the second gets a word, a later one is heeded.
    while !running.has_ended() {
        running.signal(Signal::TERM);
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let finished = running.finish();
    let result = finished.assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "release_unconfirmed");
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains("further signal"), "{message}");
    assert_eq!(result["released"], serde_json::json!([]));
    let left = result["unreleased"].as_array().expect("a list");
    assert_eq!(left.len(), 3, "{result}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn serve_ends_with_a_signal() {
    let serve = Serve::start(&["--regions", "3", "--output", "json"]);
    serve.process.signal(Signal::INT);
    serve.process.finish().assert_ended(0, "ok");
}
