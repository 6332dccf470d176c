use std::fmt;
use std::ops::Deref;

use crate::error::Error;
use crate::progress::FinishReport;

/// Why the hold did not begin: an [`Error`], to which it dereferences, and what
/// became of the leases that had been taken.
#[derive(Clone, PartialEq, Eq)]
pub struct PrepareError(Box<(Error, Option<FinishReport>)>);

impl PrepareError {
    pub(super) fn new(error: Error, report: Option<FinishReport>) -> Self {
        Self(Box::new((error, report)))
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.0.0
    }

    /// Returns what became of the leases: which stores were released and which
    /// may stay suspended, and for how long. `None` when the run never started,
    /// or when the driver itself failed.
    pub fn report(&self) -> Option<&FinishReport> {
        self.0.1.as_ref()
    }

    /// Returns both parts.
    pub fn into_parts(self) -> (Error, Option<FinishReport>) {
        *self.0
    }
}

/// Why a hold did not end well: an [`Error`], to which it dereferences, and
/// what became of the leases. The snapshots taken during the hold have to be
/// discarded.
#[derive(Clone, PartialEq, Eq)]
pub struct FinishError(Box<(Error, FinishReport)>);

impl FinishError {
    pub(super) fn new(error: Error, report: FinishReport) -> Self {
        Self(Box::new((error, report)))
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.0.0
    }

    /// Returns what became of the leases: which stores were released and which
    /// may stay suspended, and for how long.
    pub fn report(&self) -> &FinishReport {
        &self.0.1
    }

    /// Returns both parts.
    pub fn into_parts(self) -> (Error, FinishReport) {
        *self.0
    }
}

macro_rules! wraps_error {
    ($name:ident) => {
        impl Deref for $name {
            type Target = Error;

            fn deref(&self) -> &Error {
                self.error()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self.error(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("error", self.error())
                    .field("report", &self.report())
                    .finish()
            }
        }

        impl std::error::Error for $name {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.error().source()
            }
        }

        impl From<$name> for Error {
            fn from(error: $name) -> Self {
                error.into_parts().0
            }
        }
    };
}

wraps_error!(PrepareError);
wraps_error!(FinishError);
