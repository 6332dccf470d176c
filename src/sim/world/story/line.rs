use std::fmt;
use std::time::Duration;

/// What a line of a story is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Mark {
    /// The client sent something.
    Sent,
    /// Something reached the client.
    Answered,
    /// Something went wrong in the cluster, or it changed.
    Fault,
    /// A phase of the run began.
    Phase,
    /// The run says something of itself.
    Note,
}

impl Mark {
    /// Returns the name in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Fault => "fault",
            Self::Phase => "phase",
            Self::Note => "note",
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Sent => "->",
            Self::Answered => "<-",
            Self::Fault => "!!",
            Self::Phase => "==",
            Self::Note => "**",
        }
    }
}

/// A line of a story.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line {
    /// When the first step of it happened, counted from the start of the run.
    pub at: Duration,
    /// When the last one happened.
    pub until: Duration,
    /// What it is about.
    pub mark: Mark,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, sign) = (self.at.as_secs_f64(), self.mark.sign());
        if self.mark == Mark::Phase {
            writeln!(f)?;
        }
        write!(f, "{at:11.4}s {sign} {}", self.text)?;
        if self.until > self.at {
            let over = self.until.saturating_sub(self.at);
            write!(f, " (over {})", short(over))?;
        }
        Ok(())
    }
}

/// Returns a time with about three digits.
pub(super) fn short(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}
