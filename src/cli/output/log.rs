use std::io::{self, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::queue::{Queue, Rank};
use super::stdio::write_best_effort;

/// The logs' way to standard error.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    queue: Queue<Vec<u8>>,
}

impl Logs {
    /// Waits until everything is written, `limit` at most.
    pub(crate) fn close(&self, limit: Duration) {
        self.queue.close(limit);
    }

    /// Writes a line for people.
    pub(crate) fn line(&self, text: &str) {
        self.queue
            .push(Rank::Vital, format!("{text}\n").into_bytes());
    }
}

/// Sends logs to standard error through a thread of their own: warnings and
/// worse, or what `RUST_LOG` says. A progress bar on the same terminal is put
/// aside meanwhile.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn start_logs(bar: Option<ProgressBar>) -> io::Result<Logs> {
    let queue = Queue::start("stderr", move |line: Vec<u8>, dropped| {
        let write = || {
            if dropped > 0 {
                let note = format!("({dropped} log lines were left out)\n");
                write_best_effort(io::stderr(), note.as_bytes());
            }
            write_best_effort(io::stderr(), &line);
        };
        match &bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    })?;
    let logs = Logs { queue };
    let (filter, wrong) = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => match text.parse::<EnvFilter>() {
            Ok(filter) => (filter, None),
            Err(error) => (EnvFilter::new("warn"), Some(error)),
        },
        _ => (EnvFilter::new("warn"), None),
    };
    // A subscriber is set already only when the program is embedded; then the
    // logs are that program's affair.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .with_writer(logs.clone())
        .try_init();
    if let Some(error) = wrong {
        logs.line(&format!("RUST_LOG is not understood and ignored: {error}"));
    }
    Ok(logs)
}

impl MakeWriter<'_> for Logs {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line {
            queue: self.queue.clone(),
            bytes: Vec::new(),
        }
    }
}

/// One log line in the making.
#[derive(Debug)]
pub(crate) struct Line {
    queue: Queue<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.queue
                .push(Rank::Ordinary, std::mem::take(&mut self.bytes));
        }
    }
}
