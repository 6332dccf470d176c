use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::holder::{Holder, Holders};
use crate::error::{Error, ErrorKind};

/// What went wrong with a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum LockErrorKind {
    /// Somebody else holds the lock.
    Held,
    /// What lies in the lock's place cannot be understood, so nobody can tell
    /// who holds it; it is never overwritten or deleted by itself.
    Broken,
    /// The lock was held and is not any more, or can no longer be trusted.
    Lost,
    /// The lock is not held by the one that was to be broken.
    NotThatHolder,
    /// The backend refuses our identity, or does not let it do this.
    Permission,
    /// The backend asks for fewer calls, until the deadline.
    Throttled,
    /// The backend cannot be reached, or gave no answer until the deadline.
    Unreachable,
    /// The backend lacks what the lock needs.
    Unsupported,
    /// The backend has no room left: its disk, or a quota there, is full.
    Full,
    /// The settings cannot work.
    Config,
    /// Anything else.
    Other,
}

impl LockErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 11] = [
        Self::Held,
        Self::Broken,
        Self::Lost,
        Self::NotThatHolder,
        Self::Permission,
        Self::Throttled,
        Self::Unreachable,
        Self::Unsupported,
        Self::Full,
        Self::Config,
        Self::Other,
    ];

    /// Returns what the kind is among all errors of the library.
    pub const fn error_kind(self) -> ErrorKind {
        match self {
            Self::Held | Self::NotThatHolder => ErrorKind::Locked,
            Self::Broken => ErrorKind::LockBroken,
            Self::Lost => ErrorKind::LockLost,
            Self::Permission => ErrorKind::Unauthenticated,
            Self::Throttled | Self::Unreachable => ErrorKind::Unreachable,
            Self::Unsupported => ErrorKind::Unsupported,
            Self::Full => ErrorKind::StorageFull,
            Self::Config => ErrorKind::Config,
            Self::Other => ErrorKind::Internal,
        }
    }
}

/// What a user of a lock gets when something went wrong.
///
/// The message is for people and may change; decide by [`LockError::kind`]. It
/// never shows credentials.
#[derive(Clone)]
pub struct LockError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: LockErrorKind,
    message: String,
    holders: Holders,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl LockError {
    /// Returns an error of `kind` that says `message`.
    pub fn new(kind: LockErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            holders: Holders::default(),
            source: None,
        }))
    }

    /// Returns the error of a lock that others hold, which names them with their
    /// ages as of `now`.
    pub fn held(holders: Holders, now: SystemTime) -> Self {
        let message = format!("the lock is held: {}", holders.describe(now));
        Self::new(LockErrorKind::Held, message).with_holders(holders)
    }

    /// Returns the error of a lock that somebody else has now.
    pub(crate) fn taken_over(holder: Holder) -> Self {
        let message = format!("the lock was lost: id {} holds it now", holder.id);
        Self::new(LockErrorKind::Lost, message).with_holders([holder].into_iter().collect())
    }

    /// Names those who hold the lock.
    #[must_use]
    pub fn with_holders(mut self, holders: Holders) -> Self {
        self.0.holders = holders;
        self
    }

    /// Names the error that led to it.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns what it is, for decisions.
    pub fn kind(&self) -> LockErrorKind {
        self.0.kind
    }

    /// Returns whether the same call can succeed later without a change of
    /// configuration or rights.
    pub fn is_retryable(&self) -> bool {
        self.0.kind.error_kind().is_retryable()
    }

    /// Returns those who stand in the way, or took the lock over; empty where
    /// the error is about something else.
    pub fn holders(&self) -> &Holders {
        &self.0.holders
    }

    /// Returns the message without anything added.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Self::new(error.kind().error_kind(), error.0.message)
    }
}

impl From<Error> for LockError {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Config => LockErrorKind::Config,
            _ => LockErrorKind::Other,
        };
        Self::new(kind, error.message())
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_keeps_its_meaning_among_all_errors() {
        for kind in LockErrorKind::ALL {
            let error = Error::from(LockError::new(kind, "words"));
            assert_eq!(error.kind(), kind.error_kind());
            assert_eq!(error.message(), "words");
            assert_eq!(LockError::new(kind, "words").to_string(), "words");
        }
        assert_eq!(LockErrorKind::Other as usize + 1, LockErrorKind::ALL.len());
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_another_try() {
        let worth: Vec<_> = LockErrorKind::ALL
            .into_iter()
            .filter(|kind| LockError::new(*kind, "").is_retryable())
            .collect();
        assert_eq!(
            worth,
            [
                LockErrorKind::Held,
                LockErrorKind::Lost,
                LockErrorKind::NotThatHolder,
                LockErrorKind::Throttled,
                LockErrorKind::Unreachable,
                LockErrorKind::Full,
            ]
        );
    }
}
