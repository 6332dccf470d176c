use std::time::Duration;

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::cli::process::Signals;
use crate::lock::{LockError, LockGuard, RunLock};

/// How long an acquisition that was given up may take to clear away what it has
/// left behind: a call under way, and a removal.
const TIDY_LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why a lock was not taken.
#[derive(Debug)]
pub(super) enum NotTaken {
    Failed(LockError),
    /// A signal came first.
    Interrupted(Signal),
}

/// Takes a lock, unless a signal comes first.
pub(super) async fn take(
    lock: &dyn RunLock,
    wait: Duration,
    signals: &mut Signals,
) -> Result<LockGuard, NotTaken> {
    let tasks_before = tasks();
    let signal = {
        let acquired = lock.acquire(wait);
        tokio::select! {
            biased;
            signal = signals.next() => signal,
            acquired = acquired => return acquired.map_err(NotTaken::Failed),
        }
    };
    // What was given up ends in the background, which is this process.
    let deadline = Instant::now() + TIDY_LIMIT;
    while tasks() > tasks_before && Instant::now() < deadline {
        tokio::select! {
            _ = signals.next() => break,
            () = sleep(LOOK_EVERY) => {}
        }
    }
    Err(NotTaken::Interrupted(signal))
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
