use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// The signals that end a run.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// `None` when it was ignored at the start, as under `nohup`.
    hangup: Option<unix::Signal>,
}

impl Signals {
    /// Takes the signals over; from here on they do not kill the process.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn install() -> io::Result<Self> {
        let hangup = if ignores_hangup() {
            None
        } else {
            Some(unix::signal(SignalKind::hangup())?)
        };
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = hangup => Signal::HUP,
        }
    }
}

/// Returns a signal's name.
pub(crate) fn name_of(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        _ => "a signal",
    }
}

/// Returns whether SIGHUP was ignored when the program started. Where the
/// system does not tell, it counts as not ignored.
fn ignores_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, Signal::HUP))
}

/// Reads the mask `SigIgn` of `/proc/PID/status`: bit n-1 stands for signal n.
fn ignores(status: &str, signal: Signal) -> bool {
    let bit = 1_u64 << (signal.as_raw() - 1);
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n";
        assert!(!ignores(status, Signal::HUP));
        assert!(ignores(&status.replace("1000\n", "1001\n"), Signal::HUP));
        assert!(!ignores("", Signal::HUP));
    }
}
