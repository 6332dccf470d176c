//! Processes that hold the lock: this test program, run again, or etcdctl.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use snapshot_prepare::lock::RunLock;

use crate::server::{Etcd, LIMIT};
use crate::support::lock_with;

/// A process whose output is read as it comes. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    stdin: Option<ChildStdin>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            lines,
            stdin,
        }
    }

    /// Starts another process that takes the lock with our code and holds it.
    pub(crate) fn holder(etcd: &Etcd, name: &str, ttl: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args([
                "--exact",
                "process::holder_process",
                "--ignored",
                "--nocapture",
            ])
            .env(ENDPOINTS, etcd.endpoints.join(","))
            .env(NAME, name)
            .env(TTL_MS, ttl.as_millis().to_string());
        Self::start(command)
    }

    /// Waits for a line that begins like this and returns the rest of it.
    pub(crate) fn wait_for(&self, beginning: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(LIMIT) else {
                panic!("no line begins with {beginning:?} among {seen:?}");
            };
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.to_owned();
            }
            seen.push(line);
        }
    }

    /// Returns whether it has printed nothing since it was last looked at.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.lines.try_recv(), Err(TryRecvError::Empty))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("our own child");
    }

    /// Has the holder release the lock, by closing its standard input.
    pub(crate) fn end(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ENDPOINTS: &str = "SNAPSHOT_PREPARE_TEST_ENDPOINTS";
const NAME: &str = "SNAPSHOT_PREPARE_TEST_NAME";
const TTL_MS: &str = "SNAPSHOT_PREPARE_TEST_TTL_MS";

/// Takes the lock, says so, and holds it until it is lost or standard input ends.
#[tokio::test]
#[ignore = "run by other tests as a process of its own"]
async fn holder_process() {
    let get = |name| std::env::var(name).expect(name);
    let endpoints: Vec<String> = get(ENDPOINTS).split(',').map(str::to_owned).collect();
    let ttl = Duration::from_millis(get(TTL_MS).parse().expect("a number"));
    let lock = lock_with(&endpoints, &get(NAME), |config| config.ttl = Some(ttl));
    let guard = lock
        .acquire(Duration::ZERO)
        .await
        .expect("the lock is free");
    // The test harness has begun a line of its own.
    println!("\nheld {}", guard.id());
    let (ended, end) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = ended.send(());
    });
    tokio::select! {
        error = guard.lost() => println!("lost {error}"),
        _ = end => println!("ended"),
    }
    println!(
        "release {:?}",
        guard.release().await.map_err(|error| error.kind())
    );
}
