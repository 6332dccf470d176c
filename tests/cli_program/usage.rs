use std::process::Stdio;

use crate::support::run;

/// The arguments, and what the message has to contain.
const WRONG: &[(&[&str], &str)] = &[
    (&["run", "--pd", "127.0.0.1:1", "--lease", "0s"], "lease"),
    (
        &["run", "--pd", "127.0.0.1:1", "--lease", "4s"],
        "between 5s and 1h",
    ),
    (
        &["run", "--pd", "127.0.0.1:1", "--lease", "1500ms"],
        "whole",
    ),
    (
        &["run", "--pd", "127.0.0.1:1", "--lease", "2h"],
        "between 5s and 1h",
    ),
    (
        &["run", "--pd", "127.0.0.1:1", "--lease", "120"],
        "unit is missing",
    ),
    (
        &["run", "--pd", "127.0.0.1:1", "--margin", "500ms"],
        "margin",
    ),
    (
        &["run", "--pd", "127.0.0.1:1", "--prepare-timeout", "0s"],
        "prepare timeout",
    ),
    (&["run", "--pd", "127.0.0.1:1", "--window", "0"], "window"),
    (&["run", "--pd", "127.0.0.1:1", "--proof", "hope"], "hope"),
    (&["run"], "--pd"),
    (&["run", "--pd", ""], "empty"),
    (&["run", "--pd", "pd.example"], "port is missing"),
    (
        &["run", "--pd", "127.0.0.1:1", "--ca", "/there/is/none.pem"],
        "/there/is/none.pem",
    ),
    (&["run", "--pd", "https://127.0.0.1:1"], "https"),
    (
        &["run", "--pd", "127.0.0.1:1", "--ca", "/a", "--cert", "/b"],
        "--key",
    ),
    (
        &[
            "run",
            "--pd",
            "127.0.0.1:1",
            "--ready-file",
            "/there/is/no/directory",
        ],
        "--ready-file /there/is/no/directory",
    ),
    (
        &["check", "--pd", "127.0.0.1:1", "--timeout", "0s"],
        "timeout",
    ),
    (&["demo", "--lease", "4s"], "between 5s and 1h"),
    (&["demo", "--stores", "0"], "--stores"),
    (&["demo", "--faults", "some"], "some"),
    (&["demo", "--hold", "2s", "--", "true"], "--hold"),
    (
        &["demo", "--layout", "/there/is/none.json"],
        "/there/is/none.json",
    ),
    (&["simulate", "--seeds", "9..3"], "no seed in this range"),
    (&["simulate", "--seeds", "few"], "`few` is not a number"),
    (&["simulate", "--faults", "some"], "none, light and heavy"),
    (&["simulate", "--only", "split,splt"], "splt"),
    (&["simulate", "--without", "splt"], "half_open"),
    (&["simulate", "--fault", "split=0"], "no count from 1"),
    (&["simulate", "--stores", "0"], "from 1 to 1000"),
    (&["simulate", "--regions", "9..3"], "larger than the second"),
    (&["simulate", "--trace", "1", "--seeds", "1..2"], "--seeds"),
];

#[test]
fn wrong_usage_ends_in_2_with_a_message() {
    for (args, part) in WRONG {
        let finished = run(args);
        assert_eq!(finished.code, Some(2), "{args:?}: {finished:#?}");
        assert!(finished.stderr.contains(part), "{args:?}: {finished:#?}");
        assert!(finished.lines.is_empty(), "{args:?}: {finished:#?}");
    }
}

#[test]
fn wrong_usage_has_a_json_result_too() {
    for (args, part) in WRONG {
        let mut args = args.to_vec();
        args.splice(1..1, ["--output", "json"]);
        let result = run(&args).assert_ended(2, "error");
        assert_eq!(result["kind"], "config");
        let message = result["message"].as_str().expect("a message");
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

/// With so few open files that something fails, each time somewhere else.
#[test]
fn whatever_the_system_refuses_there_is_a_result() {
    for files in 4..=12 {
        let script = format!(
            "ulimit -n {files}; exec \"$0\" run --pd 127.0.0.1:1 --prepare-timeout 200ms --output json"
        );
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_snapshot-prepare")]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = crate::support::Running::start(command).finish();
        let result = finished.result();
        let outcome = result["outcome"].as_str().expect("told");
        let code = finished.code.expect("not killed");
        let known = [("error", 1), ("not_prepared", 10)];
        assert!(known.contains(&(outcome, code)), "{files}: {finished:#?}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("bound").to_string();
    let finished = run(&["serve", "--listen", &address, "--output", "json"]);
    let result = finished.assert_ended(2, "error");
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains(&address), "{message}");
}

#[test]
fn a_broken_layout_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("regions.json");
    std::fs::write(&file, "{\"count\": 1, \"regions\": [").expect("written");
    let path = file.to_str().expect("plain");
    let finished = run(&["demo", "--layout", path]);
    assert_eq!(finished.code, Some(2), "{finished:#?}");
    assert!(finished.stderr.contains(path), "{finished:#?}");
    assert!(finished.stderr.contains("cut off"), "{finished:#?}");
}

#[test]
fn help_teaches() {
    for args in [
        vec!["--help"],
        vec!["run", "--help"],
        vec!["demo", "--help"],
        vec!["serve", "--help"],
        vec!["simulate", "--help"],
    ] {
        let finished = run(&args);
        assert_eq!(finished.code, Some(0));
        let text = finished.lines.join("\n");
        assert!(text.contains("Examples:"), "{args:?}: {text}");
        assert!(finished.stderr.is_empty());
    }
    let text = run(&["run", "--help"]).lines.join("\n");
    for code in [" 10 ", " 11 ", " 12 ", " 13 ", " 20 "] {
        assert!(text.contains(code), "no exit code{code}in {text}");
    }
}

#[test]
fn an_endpoint_that_is_not_pd_ends_in_10() {
    let serve = crate::support::Serve::start(&["--regions", "3"]);
    let store = serve.stores.first().expect("a store");
    for command in ["run", "check"] {
        let finished = run(&[command, "--pd", store, "--output", "json"]);
        let result = finished.assert_ended(10, "not_prepared");
        assert_eq!(result["kind"], "wrong_service", "{result}");
    }
}
