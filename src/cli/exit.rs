use std::fmt;

/// How a run of the program ended, as the output and the exit code tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All went well.
    Ok,
    /// Something that nobody expected, or a property of the simulation broken.
    Error,
    /// A usage or configuration error; nothing was dialled.
    Usage,
    /// The hold never began, or a cluster is not fit for a run.
    NotPrepared,
    /// The hold was lost, or is not known to have lasted.
    HoldLost,
    /// The lock of the run is held by somebody else.
    Locked,
    /// A signal came before the work was done.
    Cancelled,
    /// The command failed; the hold itself was good.
    CommandFailed,
}

impl Outcome {
    /// Every outcome, in the order of the exit codes.
    pub(crate) const ALL: [Self; 8] = [
        Self::Ok,
        Self::Error,
        Self::Usage,
        Self::NotPrepared,
        Self::HoldLost,
        Self::Locked,
        Self::Cancelled,
        Self::CommandFailed,
    ];

    /// Returns the exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::NotPrepared => 10,
            Self::HoldLost => 11,
            Self::Locked => 12,
            Self::Cancelled => 13,
            Self::CommandFailed => 20,
        }
    }

    /// Returns the name in the output. A usage error is an `error` of kind
    /// `config`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error | Self::Usage => "error",
            Self::NotPrepared => "not_prepared",
            Self::HoldLost => "hold_lost",
            Self::Locked => "locked",
            Self::Cancelled => "cancelled",
            Self::CommandFailed => "command_failed",
        }
    }

    /// Returns what it means for the caller.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "the hold lasted: snapshots taken during it fit together",
            Self::Error => "something unexpected; please report it",
            Self::Usage => "wrong usage or configuration; nothing was dialed",
            Self::NotPrepared => "the hold never began; take no snapshots",
            Self::HoldLost => "the hold was lost or is in doubt: discard the snapshots",
            Self::Locked => "somebody else holds the lock",
            Self::Cancelled => "a signal came before the work was done",
            Self::CommandFailed => "the command failed; the hold was good",
        }
    }

    /// Returns the table of exit codes for the help text.
    pub(crate) fn table() -> String {
        let mut table = String::from("Exit codes:\n");
        for outcome in Self::ALL {
            let line = format!(
                "  {:>2}  {:<14}  {}\n",
                outcome.code(),
                outcome.as_str(),
                outcome.meaning()
            );
            table.push_str(&line);
        }
        table
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_tells_every_exit_code() {
        let readme = include_str!("../../README.md");
        for outcome in Outcome::ALL {
            let row = format!("| {} | `{}` |", outcome.code(), outcome.as_str());
            assert!(readme.contains(&row), "no row {row:?} in the README");
        }
    }
}
