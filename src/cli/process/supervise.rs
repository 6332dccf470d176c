use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;

use rustix::process::Signal;

use super::{RunningCommand, Signals, name_of};
use crate::cli::output::{CommandStatus, Event, Reporter};

/// How a command came to its end.
#[derive(Debug)]
pub(crate) enum CommandEnd<L> {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It could not be run; says why.
    NotRun(String),
    /// It ended after a signal that was passed on to it.
    Interrupted(Signal),
    /// It was stopped, since what it relied on was lost.
    Lost(L),
}

/// Runs a command while `what` is held, until it has ended. Signals are passed
/// on to it. When `lost` resolves, `on_lost` is told first, then the command is
/// stopped.
pub(crate) async fn supervise<L>(
    command: &[OsString],
    environment: Vec<(&'static str, Option<OsString>)>,
    what: &str,
    reporter: &Reporter,
    signals: &mut Signals,
    mut lost: Pin<&mut impl Future<Output = L>>,
    on_lost: impl FnOnce(&L),
) -> CommandEnd<L> {
    let mut running = match RunningCommand::start(command, environment, reporter.is_json()) {
        Ok(running) => running,
        Err(error) => return CommandEnd::NotRun(not_started(command, &error)),
    };
    tell(reporter, CommandStatus::Started, None);
    let mut interrupted = None;
    loop {
        tokio::select! {
            biased;
            loss = lost.as_mut() => {
                on_lost(&loss);
                let status = running.stop().await;
                tell(reporter, CommandStatus::Exited, status);
                return CommandEnd::Lost(loss);
            }
            status = running.wait() => {
                let status = match status {
                    Ok(status) => status,
                    Err(error) => {
                        running.stop().await;
                        let message = format!("the command cannot be waited for: {error}");
                        return CommandEnd::NotRun(message);
                    }
                };
                tell(reporter, CommandStatus::Exited, Some(status));
                return interrupted.map_or(CommandEnd::Exited(status), CommandEnd::Interrupted);
            }
            signal = signals.next() => {
                reporter.tell(&format!(
                    "{} is passed on to the command; {what} lasts until it has ended",
                    name_of(signal)
                ));
                running.signal(signal);
                interrupted.get_or_insert(signal);
            }
        }
    }
}

fn tell(reporter: &Reporter, status: CommandStatus, exit: Option<ExitStatus>) {
    reporter.emit(Event::Command {
        status,
        code: exit.and_then(|exit| exit.code()),
        signal: exit.and_then(|exit| exit.signal()),
    });
}

fn not_started(command: &[OsString], error: &std::io::Error) -> String {
    let program = command
        .first()
        .map(|program| program.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("the command `{program}` cannot be started: {error}")
}
