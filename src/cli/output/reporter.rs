use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::event::{Event, RunResult, Stamped};
use super::log::{Logs, start_logs};
use super::queue::Queue;
use super::stdio::write_best_effort;
use super::text::TextWriter;
use crate::cli::args::Format;
use crate::cli::exit::Outcome;
use crate::error::Error;

/// How long the end waits for a standard output that does not take what it is
/// given.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Says what happens, on standard output.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    format: Format,
    show_keys: bool,
    queue: Queue<Stamped>,
    logs: Logs,
    lost: AtomicBool,
    ended: AtomicBool,
}

impl Reporter {
    /// Starts the threads that write.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(format: Format, show_keys: bool) -> io::Result<Self> {
        let bar = (format == Format::Text && io::stderr().is_terminal())
            .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        let logs = start_logs(bar.clone())?;
        let queue = match format {
            Format::Json => Queue::start("stdout", |stamped: Stamped, _| {
                if let Some(line) = stamped.json_line() {
                    write_best_effort(io::stdout(), line.as_bytes());
                }
            })?,
            Format::Text => {
                let mut writer = TextWriter::new(bar);
                Queue::start("stdout", move |stamped, _| writer.write(&stamped))?
            }
        };
        Ok(Self(Arc::new(Inner {
            started: Instant::now(),
            format,
            show_keys,
            queue,
            logs,
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })))
    }

    /// Says that something happened, now. Returns what is said.
    pub(crate) fn emit(&self, event: Event) -> Stamped {
        let stamped = self.stamp(event);
        if !self.0.ended.load(Ordering::SeqCst) {
            self.0.queue.push(stamped.event.rank(), stamped.clone());
        }
        stamped
    }

    /// Returns an event with the present time, without saying it.
    pub(crate) fn stamp(&self, event: Event) -> Stamped {
        let t_ms = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Stamped {
            event,
            t_ms,
            at: format!("{:.3}", jiff::Timestamp::now()),
        }
    }

    /// Says something that was stamped before.
    pub(crate) fn emit_stamped(&self, stamped: Stamped) {
        if !self.0.ended.load(Ordering::SeqCst) {
            self.0.queue.push(stamped.event.rank(), stamped);
        }
    }

    /// Says something that is for people only.
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.emit(Event::Note(text.into()));
    }

    /// Says something for people: on standard output where that carries text,
    /// as a warning in the logs otherwise.
    pub(crate) fn tell(&self, text: &str) {
        if self.is_json() {
            tracing::warn!("{text}");
        } else {
            self.note(text);
        }
    }

    /// Says that the hold is lost, once.
    pub(crate) fn hold_lost(&self, error: &Error) {
        if !self.0.lost.swap(true, Ordering::SeqCst) {
            self.emit(Event::HoldLost {
                cause: error.kind().as_str(),
                message: self.message(error),
                store: error.store_id().map(|id| id.0),
            });
        }
    }

    /// Returns what an error says, with keys only where the user asked for
    /// them.
    pub(crate) fn message(&self, error: &Error) -> String {
        match error.key_range() {
            Some(range) if self.0.show_keys => {
                format!("{} (keys {})", error.message(), range.reveal())
            }
            _ => error.message().to_owned(),
        }
    }

    /// Returns whether keys may be shown.
    pub(crate) fn shows_keys(&self) -> bool {
        self.0.show_keys
    }

    /// Returns whether standard output carries JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.0.format == Format::Json
    }

    /// Returns how long the program has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// Like [`Reporter::end`], where people have been told already.
    pub(crate) fn end_quietly(&self, result: RunResult) {
        let stamped = self.stamp(Event::Result(Box::new(result)));
        if !self.0.ended.swap(true, Ordering::SeqCst) {
            self.0.queue.push(stamped.event.rank(), stamped);
            self.0.queue.close(CLOSE_LIMIT);
        }
    }

    /// Says how it ended and nothing more. Waits, within limits, until it is
    /// written.
    pub(crate) fn end(&self, result: RunResult) -> Outcome {
        let outcome = result.outcome;
        let error = result.message.clone();
        let stamped = self.stamp(Event::Result(Box::new(result)));
        if self.0.ended.swap(true, Ordering::SeqCst) {
            return outcome;
        }
        self.0.queue.push(stamped.event.rank(), stamped);
        // On a terminal the summary has said it already.
        let told = self.0.format == Format::Text
            && outcome != Outcome::Usage
            && io::stdout().is_terminal();
        if let Some(error) = error.filter(|_| outcome != Outcome::Ok && !told) {
            self.0.logs.line(&format!("error: {error}"));
        }
        let deadline = Instant::now() + CLOSE_LIMIT;
        self.0.queue.close(CLOSE_LIMIT);
        let left = deadline.saturating_duration_since(Instant::now());
        self.0.logs.close(left.max(Duration::from_millis(200)));
        outcome
    }
}
