//! A server that speaks S3, moto's, as a process that is stopped when dropped. The
//! Python that has it is named by a variable, which `scripts/test.sh` sets.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PYTHON: &str = "SNAPSHOT_PREPARE_TEST_PYTHON";

/// The secret key of its only user: any is taken, and none may be shown.
pub(crate) const SECRET: &str = "not-to-be-shown";

/// A server that ends with the test.
pub(crate) struct Moto {
    process: Child,
    pub(crate) endpoint: String,
}

impl Moto {
    /// Returns `None` without a Python, save in CI, where that would go unnoticed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts it with these variables in its environment.
    pub(crate) fn start_with(environment: &[(&str, &str)]) -> Option<Self> {
        let python = env::var_os(PYTHON);
        assert!(
            python.is_some() || env::var_os("CI").is_none(),
            "{PYTHON} is not set in CI"
        );
        let Some(python) = python else {
            eprintln!("skipped: {PYTHON} is not set; scripts/test.sh sets it");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lock/storage/s3_server.py");
        let mut process = Command::new(python)
            .arg(script)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let output = process.stdout.take().expect("it is piped");
        let mut port = String::new();
        let read = BufReader::new(output).read_line(&mut port);
        read.expect("its port");
        let endpoint = format!("http://127.0.0.1:{}", port.trim());
        Some(Self { process, endpoint })
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
