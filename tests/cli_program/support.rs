use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::Value;

/// Long enough for a slow machine under load.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_snapshot-prepare"));
    command
        .args(args)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Finished {
    Running::start(program(args)).finish()
}

/// A process whose output is read as it comes. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    incoming: Receiver<String>,
    seen: Vec<String>,
    stderr: Option<JoinHandle<String>>,
}

/// What a process has left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<String>,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let (sender, incoming) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self {
            child,
            incoming,
            seen: Vec::new(),
            stderr: Some(stderr),
        }
    }

    /// Waits for a line for which `wanted` holds and returns it.
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.incoming.recv_timeout(left) else {
                panic!("no {what} among {:#?}", self.seen);
            };
            let value = serde_json::from_str::<Value>(&line);
            self.seen.push(line);
            if let Ok(value) = value
                && wanted(&value)
            {
                return value;
            }
        }
    }

    pub(crate) fn wait_for_event(&mut self, event: &str) -> Value {
        self.wait_for(event, |line| line["event"] == event)
    }

    pub(crate) fn wait_for_phase(&mut self, phase: &str) -> Value {
        self.wait_for(phase, |line| line["phase"] == phase)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process is there");
    }

    /// Freezes the process; returns when none of its threads runs any more.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        let seen = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("a child");
        assert!(seen.is_some_and(|(_, status)| status.stopped()), "it ended");
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.child.id()).expect("a process id");
        Pid::from_raw(id).expect("not 0")
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("waited for").is_some()
    }

    pub(crate) fn finish(mut self) -> Finished {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waited for") {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "still running after {LIMIT:?}: {:#?}",
                self.seen
            );
            thread::sleep(Duration::from_millis(10));
        };
        self.seen.extend(self.incoming.iter());
        let stderr = self.stderr.take().expect("taken once");
        Finished {
            code: status.code(),
            lines: std::mem::take(&mut self.seen),
            stderr: stderr.join().expect("read"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Returns the JSON lines; anything else on standard output is an error.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(|line| {
                let value: Value = serde_json::from_str(line)
                    .unwrap_or_else(|error| panic!("{error}: not a JSON line: {line:?}"));
                for field in ["event", "t_ms", "at"] {
                    assert!(!value[field].is_null(), "no {field} in {line}");
                }
                value
            })
            .collect()
    }

    pub(crate) fn event(&self, event: &str) -> Option<Value> {
        self.events()
            .into_iter()
            .find(|line| line["event"] == event)
    }

    /// Returns the result: exactly one, and last.
    pub(crate) fn result(&self) -> Value {
        let events = self.events();
        let results: Vec<_> = events
            .iter()
            .filter(|line| line["event"] == "result")
            .collect();
        assert_eq!(results.len(), 1, "{self:#?}");
        let last = events.last().expect("not empty");
        assert_eq!(last["event"], "result", "{self:#?}");
        last.clone()
    }

    /// Returns the phases of the last attempt, in order.
    pub(crate) fn phases(&self) -> Vec<String> {
        self.events()
            .iter()
            .filter(|line| line["event"] == "phase")
            .map(|line| line["phase"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Checks how it ended, by exit code and result.
    #[track_caller]
    pub(crate) fn assert_ended(&self, code: i32, outcome: &str) -> Value {
        assert_eq!(self.code, Some(code), "{self:#?}");
        let result = self.result();
        assert_eq!(result["outcome"], outcome, "{self:#?}");
        result
    }
}

/// A simulated cluster served by another process.
pub(crate) struct Serve {
    pub(crate) process: Running,
    pub(crate) pd: String,
    pub(crate) stores: Vec<String>,
}

impl Serve {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(args);
        let mut process = Running::start(program(&all));
        let line = process.wait_for_event("serving");
        let stores = line["stores"].as_array().expect("a list");
        Self {
            pd: line["pd"].as_str().expect("an address").to_owned(),
            stores: stores
                .iter()
                .map(|store| store["address"].as_str().expect("an address").to_owned())
                .collect(),
            process,
        }
    }
}
