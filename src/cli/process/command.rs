use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// How long a group has from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// How long the system has to clear away what was killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// How often a dying group is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The command, in a process group of its own.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    child: Child,
    group: Option<Pid>,
}

impl RunningCommand {
    /// Starts it.
    ///
    /// A terminal is not handed on as its standard input: a process that reads
    /// it from the background is stopped, which would last as long as the hold.
    ///
    /// # Errors
    /// The system's: not found, not executable.
    pub(crate) fn start(
        command: &[OsString],
        environment: Vec<(&'static str, Option<OsString>)>,
        stdout_to_stderr: bool,
    ) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        if io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        if stdout_to_stderr {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.spawn()?;
        // The group has its leader's number.
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self { child, group })
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends a signal to the whole group.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!("the command's process group cannot be signaled: {error}");
        }
    }

    /// Ends the whole group: SIGTERM, and SIGKILL to what is left after 10 s.
    /// Returns the command's status, unless even that does not end it.
    pub(crate) async fn stop(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        // What was stopped could not react otherwise.
        self.signal(Signal::CONT);
        let deadline = Instant::now() + GRACE;
        let mut status = None;
        while Instant::now() < deadline {
            if status.is_none() {
                status = self.child.try_wait().ok().flatten();
            }
            if status.is_some() && !self.group_lives() {
                return status;
            }
            sleep(LOOK_EVERY).await;
        }
        self.signal(Signal::KILL);
        match timeout(KILL_LIMIT, self.child.wait()).await {
            Ok(result) => result.ok(),
            Err(_) => status,
        }
    }

    fn group_lives(&self) -> bool {
        self.group
            .is_some_and(|group| test_kill_process_group(group).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(script: &str) -> RunningCommand {
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        RunningCommand::start(&command, Vec::new(), true).expect("started")
    }

    #[tokio::test]
    async fn the_status_is_the_commands() {
        let status = shell("exit 7").wait().await.expect("waited for");
        assert_eq!(status.code(), Some(7));
    }

    #[tokio::test]
    async fn stopping_ends_the_children_too() {
        let mut command = shell("sleep 1000 & sleep 1000 & wait");
        let status = command.stop().await.expect("ended");
        assert_eq!(status.signal(), Some(15));
        assert!(!command.group_lives());
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let command = [OsString::from("/there/is/no/such/program")];
        let error = RunningCommand::start(&command, Vec::new(), true).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
