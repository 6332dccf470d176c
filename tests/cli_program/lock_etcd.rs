//! The program's locks on a real etcd.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::etcd::Etcd;
use crate::support::{Finished, LIMIT, Running, Serve, program, run};

/// A lock on an etcd of its own.
struct Place {
    etcd: Etcd,
    url: String,
}

impl Place {
    fn new() -> Self {
        let etcd = Etcd::start();
        let url = format!("etcd://{}/backup", etcd.endpoints[0]);
        Self { etcd, url }
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let args = [
            "lock", "acquire", &self.url, "--output", "json", "--ttl", "5s",
        ];
        args.into_iter().chain(more.iter().copied()).collect()
    }

    fn finished(&self, more: &[&str]) -> Finished {
        run(&self.args(more))
    }

    /// Starts a holder with a command that lasts, and waits until it holds.
    fn held(&self) -> Running {
        let mut holder = Running::start(program(&self.args(&["--", "sleep", "1000"])));
        holder.wait_for_event("command");
        holder
    }

    /// Waits until so many contend for the lock.
    fn wait_for_keys(&self, count: usize) {
        let deadline = Instant::now() + LIMIT;
        while self.etcd.keys("backup/").len() != count {
            assert!(Instant::now() < deadline, "never {count} keys");
            sleep(Duration::from_millis(50));
        }
    }
}

/// A call of etcdctl that is killed at the end.
struct Ctl(Child);

impl Ctl {
    fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("etcdctl is installed"))
    }
}

impl Drop for Ctl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn etcdctl_and_we_exclude_each_other() {
    let place = Place::new();
    let theirs = Ctl::start(place.etcd.ctl(&["lock", "backup", "--ttl", "5"]));
    place.wait_for_keys(1);
    place.finished(&["--", "true"]).assert_ended(12, "locked");
    drop(theirs);
    place
        .finished(&["--wait", "2m", "--", "true"])
        .assert_ended(0, "ok");

    let ours = place.held();
    let mut theirs = Ctl::start(place.etcd.ctl(&["lock", "backup", "true"]));
    place.wait_for_keys(2);
    assert!(theirs.0.try_wait().expect("a child").is_none());
    ours.signal(Signal::TERM);
    ours.finish().assert_ended(13, "cancelled");
    assert!(theirs.0.wait().expect("a child").success());
    place.wait_for_keys(0);
}

#[test]
fn a_holder_that_is_killed_frees_the_lock() {
    let place = Place::new();
    let holder = place.held();
    place.finished(&["--", "true"]).assert_ended(12, "locked");
    holder.signal(Signal::KILL);
    let next = place.finished(&["--wait", "2m", "--", "true"]);
    next.assert_ended(0, "ok");
    let fence = next.event("lock").expect("told")["fence"].as_u64();
    assert!(fence.is_some_and(|fence| fence > 0), "{next:#?}");
    place.wait_for_keys(0);
}

#[test]
fn a_holder_that_stood_still_past_its_lease_stops_its_command() {
    let place = Place::new();
    let holder = place.held();
    holder.freeze();
    place.wait_for_keys(0);
    holder.signal(Signal::CONT);
    let result = holder.finish().assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "lock_lost");
}

#[test]
fn one_run_at_a_time() {
    let place = Place::new();
    let serve = Serve::start(&["--regions", "20"]);
    let args = [
        "run", "--pd", &serve.pd, "--lock", &place.url, "--output", "json",
    ];
    let mut first = Running::start(program(&args));
    first.wait_for_event("held");
    let second = run(&args);
    second.assert_ended(12, "locked");
    assert!(second.event("phase").is_none(), "it touched a store");
    first.signal(Signal::TERM);
    first.finish().assert_ended(0, "ok");
    place.wait_for_keys(0);
}

#[test]
fn a_lease_revoked_in_the_hold_is_a_lost_hold() {
    let place = Place::new();
    let serve = Serve::start(&["--regions", "20"]);
    let mut held = Running::start(program(&[
        "run",
        "--pd",
        &serve.pd,
        "--lock",
        &place.url,
        "--lock-ttl",
        "5s",
        "--output",
        "json",
        "--",
        "sleep",
        "1000",
    ]));
    held.wait_for_event("command");
    let lease = place.etcd.leases().pop().expect("the lock's lease");
    place.etcd.run(&["lease", "revoke", &lease]);
    let result = held.finish().assert_ended(11, "hold_lost");
    assert_eq!(result["kind"], "lock_lost");
}
