//! The program's locks on a server that speaks S3; see [`s3_server`](crate::s3_server).

use std::process::Command;

use rustix::process::Signal;

use crate::s3_server::{Moto, SECRET};
use crate::support::{Finished, Running, program};

const URL: &str = "s3://locks/truncating.lock";

impl Moto {
    fn program(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        command
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        Running::start(self.program(args)).finish()
    }
}

#[test]
fn a_lock_on_s3_lets_one_at_a_time_work() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let acquire = ["lock", "acquire", URL, "--output", "json", "--"];
    let status = ["lock", "status", URL, "--output", "json"];
    let mut holder = Running::start(moto.program(&[&acquire[..], &["sleep", "1000"]].concat()));
    holder.wait_for_event("command");
    let refused = moto.run(&[&acquire[..], &["true"]].concat());
    let result = refused.assert_ended(12, "locked");
    let held = moto.run(&status);
    held.assert_ended(0, "ok");
    let told = held.event("lock").expect("told");
    let message = result["message"].as_str().expect("a message");
    for field in ["host", "id"] {
        let value = told["holders"][0][field].as_str().expect("known");
        assert!(message.contains(value), "{message}");
    }
    for finished in [&refused, &held] {
        let said = format!("{finished:?}");
        assert!(!said.contains(SECRET), "{said}");
    }
    holder.signal(Signal::TERM);
    holder.finish().assert_ended(13, "cancelled");
    let free = moto.run(&status).event("lock").expect("told");
    assert_eq!(free["status"], "free");
}

#[test]
fn a_bucket_that_is_not_there_is_an_error_of_its_own() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let finished = moto.run(&[
        "lock",
        "acquire",
        "s3://none/x",
        "--output",
        "json",
        "--",
        "true",
    ]);
    assert!(finished.event("command").is_none());
    assert!(!matches!(finished.code, Some(0 | 12)), "{finished:#?}");
}
