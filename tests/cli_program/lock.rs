use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Finished, Running, Serve, program, run};

/// A lock on local files, in a directory of its own.
struct Place {
    dir: TempDir,
    url: String,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let url = format!("file://{}", dir.path().join("truncating.lock").display());
        Self { dir, url }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("truncating.lock")
    }

    /// Returns what lies in the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("there");
        let names = entries.map(|entry| entry.expect("read").file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    fn lock(&self, command: &str, more: &[&str]) -> Vec<String> {
        let args = ["lock", command, self.url.as_str(), "--output", "json"];
        args.iter().chain(more).map(ToString::to_string).collect()
    }

    fn finished(&self, command: &str, more: &[&str]) -> Finished {
        let args = self.lock(command, more);
        run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn running(&self, command: &str, more: &[&str]) -> Running {
        let args = self.lock(command, more);
        Running::start(program(
            &args.iter().map(String::as_str).collect::<Vec<_>>(),
        ))
    }

    /// Starts a holder and returns it with the line that tells of it.
    fn held(&self, more: &[&str]) -> (Running, Value) {
        let mut holder = self.running("acquire", more);
        let line = holder.wait_for_event("lock");
        assert_eq!(line["status"], "acquired");
        (holder, line["holders"][0].clone())
    }
}

fn message(result: &Value) -> &str {
    result["message"].as_str().expect("a message")
}

#[test]
fn status_writes_nothing_and_tells_who_holds_it() {
    let place = Place::new();
    let free = place.finished("status", &[]);
    free.assert_ended(0, "ok");
    assert_eq!(free.event("lock").expect("told")["status"], "free");
    assert!(place.names().is_empty());

    let (holder, told) = place.held(&["--hint", "ask Ada"]);
    let before = fs::read(place.path()).expect("there");
    let held = place.finished("status", &[]);
    held.assert_ended(0, "ok");
    let line = held.event("lock").expect("told");
    assert_eq!(
        (&line["status"], &line["total"]),
        (&"held".into(), &1.into())
    );
    for field in ["id", "host", "pid", "hint"] {
        assert_eq!(line["holders"][0][field], told[field], "{field}");
    }
    let hint = line["holders"][0]["hint"].as_str().expect("a hint");
    assert!(hint.contains("ask Ada"), "{hint}");
    assert!(line["holders"][0]["age_ms"].is_u64());
    assert_eq!(fs::read(place.path()).expect("there"), before);
    holder.signal(Signal::TERM);
    holder.finish().assert_ended(0, "ok");
}

#[test]
fn a_second_one_is_refused_at_once_and_told_of_the_first() {
    let place = Place::new();
    let (holder, told) = place.held(&["--hint", "ask Ada", "--", "sleep", "1000"]);
    let object: Value =
        serde_json::from_slice(&fs::read(place.path()).expect("there")).expect("JSON");
    for field in ["locked_at", "locker_host", "locker_pid", "txn_id", "hint"] {
        assert!(!object[field].is_null(), "no {field} in {object}");
    }
    let refused = place.finished("acquire", &["--", "touch", "/never/to/be/run"]);
    let result = refused.assert_ended(12, "locked");
    assert!(refused.event("command").is_none());
    for part in [
        told["host"].as_str().expect("a host"),
        &told["pid"].to_string(),
        "ask Ada",
        "ago",
        told["id"].as_str().expect("an id"),
    ] {
        assert!(message(&result).contains(part), "{part}: {result}");
    }
    // A signal goes to the command, and the lock is gone when it has ended.
    holder.signal(Signal::TERM);
    holder.finish().assert_ended(13, "cancelled");
    assert!(place.names().is_empty());
}

#[test]
fn the_commands_end_is_that_of_the_lock() {
    let place = Place::new();
    let script = "test -n \"$SNAPSHOT_PREPARE_LOCK_ID\" && test -s \"$0\"";
    let path = place.path().display().to_string();
    let good = place.finished("acquire", &["--", "sh", "-c", script, &path]);
    good.assert_ended(0, "ok");
    assert!(place.names().is_empty());
    for bad in [&["sh", "-c", "exit 3"][..], &["/no/such/program"]] {
        let bad = place.finished("acquire", &[&["--"], bad].concat());
        bad.assert_ended(20, "command_failed");
    }
    assert!(place.names().is_empty());
}

#[test]
fn a_lock_that_is_removed_stops_the_command() {
    let place = Place::new();
    let (mut holder, _) = place.held(&["--", "sleep", "1000"]);
    holder.wait_for_event("command");
    fs::remove_file(place.path()).expect("removed");
    let finished = holder.finish();
    let result = finished.assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "lock_lost");
    assert_eq!(
        finished.event("hold_lost").expect("told")["cause"],
        "lock_lost"
    );
    assert!(place.names().is_empty());
}

#[test]
fn a_lock_that_is_replaced_stops_the_command_and_stays() {
    let place = Place::new();
    let (mut holder, told) = place.held(&["--", "sleep", "1000"]);
    holder.wait_for_event("command");
    let ours = fs::read_to_string(place.path()).expect("there");
    let mut other: Value = serde_json::from_str(&ours).expect("JSON");
    other["txn_id"] = "AAAAAAAAAAAAAAAAAAAAAQ==".into();
    fs::write(place.path(), other.to_string()).expect("written");
    holder.finish().assert_ended(11, "hold_lost");
    let left = fs::read_to_string(place.path()).expect("still there");
    assert_eq!(left, other.to_string());
    assert!(!left.contains(told["id"].as_str().expect("an id")));
}

#[test]
fn breaking_needs_the_id_of_what_it_removes() {
    let place = Place::new();
    let (holder, told) = place.held(&["--", "sleep", "1000"]);
    place.finished("break", &[]).assert_ended(2, "error");
    let other = "00000000-0000-4000-8000-000000000000";
    place.finished("break", &[other]).assert_ended(12, "locked");
    assert!(place.path().exists());
    let id = told["id"].as_str().expect("an id");
    // In the lock itself it stands in another form, which is as good.
    let content: Value =
        serde_json::from_slice(&fs::read(place.path()).expect("there")).expect("JSON");
    let inside = content["txn_id"].as_str().expect("an id");
    assert_ne!(inside, id);
    let kept = fs::read(place.path()).expect("there");
    let broken = place.finished("break", &[inside]);
    broken.assert_ended(0, "ok");
    fs::write(place.path(), kept).expect("put back");
    let broken = place.finished("break", &["--txn-id", id]);
    broken.assert_ended(0, "ok");
    assert_eq!(broken.event("lock").expect("told")["status"], "broken");
    assert!(place.names().is_empty());
    holder.finish().assert_ended(11, "hold_lost");
    place.finished("break", &[id]).assert_ended(12, "locked");
}

#[test]
fn releasing_is_fine_if_it_is_gone_already() {
    let place = Place::new();
    let id = "00000000-0000-4000-8000-000000000000";
    place.finished("release", &[id]).assert_ended(0, "ok");
    let (holder, _) = place.held(&[]);
    place.finished("release", &[id]).assert_ended(12, "locked");
    assert!(place.path().exists());
    holder.signal(Signal::INT);
    holder.finish().assert_ended(0, "ok");
}

#[test]
fn what_cannot_be_understood_is_left_alone() {
    for content in ["", "{\"locked_at\":\"2026-", "not a lock"] {
        let place = Place::new();
        fs::write(place.path(), content).expect("written");
        place
            .finished("acquire", &["--", "true"])
            .assert_ended(12, "locked");
        assert_eq!(fs::read_to_string(place.path()).expect("there"), content);
        assert_eq!(place.names().len(), 1);
    }
}

#[test]
fn who_waits_gets_it() {
    let place = Place::new();
    let (holder, _) = place.held(&[]);
    let waiting = place.running("acquire", &["--wait", "2m", "--", "true"]);
    holder.signal(Signal::TERM);
    holder.finish().assert_ended(0, "ok");
    waiting.finish().assert_ended(0, "ok");
    assert!(place.names().is_empty());
}

#[test]
fn a_signal_ends_the_waiting() {
    let place = Place::new();
    let (holder, _) = place.held(&[]);
    let waiting = place.running("acquire", &["--wait", "1h", "--", "true"]);
    // Signals are taken over soon; one that comes before ends it as well.
    std::thread::sleep(std::time::Duration::from_millis(500));
    waiting.signal(Signal::TERM);
    waiting.finish().assert_ended(13, "cancelled");
    assert_eq!(place.names().len(), 1);
    holder.signal(Signal::TERM);
    holder.finish().assert_ended(0, "ok");
}

#[test]
fn a_wrong_url_is_a_usage_error() {
    for url in ["x", "ftp://h/x", "s3://user:secret@b/x", "file://relative"] {
        let finished = run(&["lock", "status", url, "--output", "json"]);
        let result = finished.assert_ended(2, "error");
        assert!(!message(&result).is_empty());
        assert!(!finished.stderr.contains("secret"), "{finished:#?}");
        assert!(!finished.lines.concat().contains("secret"), "{finished:#?}");
    }
}

fn hold<'a>(serve: &'a Serve, place: &'a Place, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "run", "--pd", &serve.pd, "--lock", &place.url, "--output", "json",
    ];
    args.into_iter().chain(more.iter().copied()).collect()
}

fn ready_line(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

#[test]
fn one_run_at_a_time() {
    let serve = Serve::start(&["--regions", "20"]);
    let place = Place::new();
    let ready = place.dir.path().with_extension("ready");
    let file = ready.display().to_string();
    let more = ["--ready-file", &file];
    let mut first = Running::start(program(&hold(&serve, &place, &more)));
    first.wait_for_event("held");
    let second = run(&hold(&serve, &place, &more));
    let result = second.assert_ended(12, "locked");
    assert!(message(&result).contains("pid"), "{result}");
    assert!(second.event("phase").is_none(), "it touched a store");
    // Nor the ready file of the first.
    assert_eq!(ready_line(&ready)["event"], "held");
    first.signal(Signal::TERM);
    first.finish().assert_ended(0, "ok");
    assert!(place.names().is_empty());
    assert!(!ready.exists());
    run(&hold(&serve, &place, &["--", "true"])).assert_ended(0, "ok");
}

#[test]
fn a_lock_lost_in_the_hold_is_a_lost_hold() {
    let serve = Serve::start(&["--regions", "20"]);
    let place = Place::new();
    let mut held = Running::start(program(&hold(&serve, &place, &["--", "sleep", "1000"])));
    held.wait_for_event("command");
    fs::remove_file(place.path()).expect("removed");
    let finished = held.finish();
    let result = finished.assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "lock_lost");
    assert_eq!(result["released"], serde_json::json!([1, 2, 3]));
    assert_eq!(
        finished.event("hold_lost").expect("told")["cause"],
        "lock_lost"
    );
}

#[test]
fn a_lock_lost_just_before_its_release_is_a_lost_hold() {
    let serve = Serve::start(&["--regions", "20"]);
    let place = Place::new();
    let path = place.path().display().to_string();
    let finished = run(&hold(&serve, &place, &["--", "rm", &path]));
    let result = finished.assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "lock_lost");
    assert!(message(&result).contains(&place.url), "{result}");
}

/// Whoever looks after the run has to know that it is about the lock, and which.
#[test]
fn a_place_that_is_not_fit_for_a_lock_is_named_before_anything_is_dialed() {
    let place = Place::new();
    fs::write(place.path(), "a file where a folder is wanted").expect("written");
    let url = format!("{}/lock", place.url);
    let args = ["run", "--pd", "127.0.0.1:1", "--lock", &url];
    let args = [&args[..], &["--output", "json", "--", "true"]].concat();
    let result = run(&args).assert_ended(10, "not_prepared");
    assert_eq!(result["kind"], "lock_unusable");
    let start = format!("the lock {url} cannot be taken: ");
    assert!(message(&result).starts_with(&start), "{result}");
}

#[test]
fn a_run_that_fails_releases_its_lock() {
    let place = Place::new();
    let args = [
        "run",
        "--pd",
        "127.0.0.1:1",
        "--prepare-timeout",
        "1s",
        "--lock",
        &place.url,
        "--output",
        "json",
    ];
    run(&args).assert_ended(10, "not_prepared");
    assert!(place.names().is_empty());
}

/// Where a disk of one page, all of it taken, can be mounted for one process only.
fn on_a_full_disk(dir: &Path, args: &[&str]) -> Option<Finished> {
    const SCRIPT: &str = "mount -t tmpfs -o size=4k none \"$1\" || exit 99
        head -c 4096 /dev/zero >\"$1/fill\" || exit 99
        shift
        exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT])
        .arg("sh")
        .arg(dir)
        .arg(program(&[]).get_program())
        .args(args)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let probe = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT])
        .arg("sh")
        .arg(dir)
        .arg("true")
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped: nothing can be mounted here");
        return None;
    }
    Some(Running::start(command).finish())
}

#[test]
fn a_full_disk_is_told_as_such() {
    let place = Place::new();
    let serve = Serve::start(&["--regions", "20"]);
    let acquire = place.lock("acquire", &["--", "true"]);
    let acquire: Vec<_> = acquire.iter().map(String::as_str).collect();
    let run = [
        "run", "--pd", &serve.pd, "--lock", &place.url, "--output", "json", "--", "true",
    ];
    for (args, code, outcome) in [(&acquire[..], 1, "error"), (&run, 10, "not_prepared")] {
        let Some(finished) = on_a_full_disk(place.dir.path(), args) else {
            return;
        };
        let result = finished.assert_ended(code, outcome);
        assert_eq!(result["kind"], "storage_full", "{result}");
        let message = result["message"].as_str().expect("a message");
        assert!(message.contains("no room left"), "{message}");
        assert!(finished.event("held").is_none());
    }
}
