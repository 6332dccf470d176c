//! The program's dealings with the system: signals, the command, the ready
//! file.

mod command;
mod environment;
mod ready_file;
mod signals;
mod supervise;

pub(crate) use command::RunningCommand;
pub(crate) use environment::environment_of;
pub(crate) use ready_file::ReadyFile;
pub(crate) use signals::{Signals, name_of};
pub(crate) use supervise::{CommandEnd, supervise};
