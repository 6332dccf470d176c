use std::error::Error as _;

use object_store::Error;

use crate::lock::{LockError, LockErrorKind};

/// Returns what a failed call means. That an object is missing, exists, or has
/// changed is an answer, which callers deal with before.
pub(super) fn classify(error: &Error) -> LockErrorKind {
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => LockErrorKind::Permission,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => LockErrorKind::Unsupported,
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => LockErrorKind::Config,
        Error::Generic { store, .. } => classify_by_cause(error, *store == LOCAL),
        _ => LockErrorKind::Other,
    }
}

/// How object_store names local files in its errors.
const LOCAL: &str = "LocalFileSystem";

/// Tells apart what object_store has no kinds for: by the system's error where
/// there is one, else by the status in its words.
fn classify_by_cause(error: &Error, is_local: bool) -> LockErrorKind {
    use std::io::ErrorKind;
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    LockErrorKind::Permission
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => LockErrorKind::Full,
                ErrorKind::StaleNetworkFileHandle
                | ErrorKind::TimedOut
                | ErrorKind::Interrupted
                | ErrorKind::ResourceBusy => LockErrorKind::Unreachable,
                _ if is_local => LockErrorKind::Other,
                _ => LockErrorKind::Unreachable,
            };
        }
        cause = error.source();
    }
    let words = error.to_string();
    let has = |code: &str| words.contains(&format!("status code: {code}"));
    if has("429") || has("503") || words.contains("SlowDown") {
        LockErrorKind::Throttled
    } else if has("401") || has("403") {
        LockErrorKind::Permission
    } else if has("501") || has("405") {
        LockErrorKind::Unsupported
    } else if has("507") {
        LockErrorKind::Full
    } else if has("4") {
        LockErrorKind::Other
    } else {
        LockErrorKind::Unreachable
    }
}

/// Returns whether the same call may come through a moment later.
pub(super) fn is_transient(kind: LockErrorKind) -> bool {
    matches!(kind, LockErrorKind::Throttled | LockErrorKind::Unreachable)
}

/// Returns the error of a call that failed, with what was to be done.
pub(super) fn failed(what: &str, error: Error) -> LockError {
    let kind = classify(&error);
    let word = match kind {
        LockErrorKind::Permission => "is not allowed",
        LockErrorKind::Unsupported => "is not supported by this storage",
        LockErrorKind::Throttled => "was refused because of too many calls",
        LockErrorKind::Full => {
            "failed, as there is no room left; make some, or choose another place"
        }
        _ => "failed",
    };
    LockError::new(kind, format!("{what} {word}: {error}")).with_source(error)
}

/// Returns the error of a call that was not answered in time.
pub(super) fn unanswered(what: &str) -> LockError {
    LockError::new(
        LockErrorKind::Unreachable,
        format!("{what} was not answered in time"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(words: &str) -> Error {
        Error::Generic {
            store: "S3",
            source: words.to_owned().into(),
        }
    }

    #[test]
    fn the_rest_is_told_by_the_status() {
        for (words, kind) in [
            (
                "Server returned non-2xx status code: 429 Too Many Requests: ",
                LockErrorKind::Throttled,
            ),
            (
                "Server returned non-2xx status code: 503 Service Unavailable: x",
                LockErrorKind::Throttled,
            ),
            (
                "Server returned error response: <Code>SlowDown</Code>",
                LockErrorKind::Throttled,
            ),
            (
                "Server returned non-2xx status code: 500 Internal: ",
                LockErrorKind::Unreachable,
            ),
            (
                "Server returned non-2xx status code: 501 Not Implemented: ",
                LockErrorKind::Unsupported,
            ),
            (
                "Server returned non-2xx status code: 507 Insufficient Storage: ",
                LockErrorKind::Full,
            ),
            (
                "Server returned non-2xx status code: 400 Bad Request: ",
                LockErrorKind::Other,
            ),
            (
                "Server returned non-2xx status code: 403 Forbidden: ",
                LockErrorKind::Permission,
            ),
            (
                "HTTP error: error sending request",
                LockErrorKind::Unreachable,
            ),
        ] {
            assert_eq!(classify(&generic(words)), kind, "{words}");
        }
    }

    #[test]
    fn what_failed_is_said_with_why() {
        let source = || "z".into();
        let store = "y";
        for (error, kind, words) in [
            (
                Error::PermissionDenied {
                    path: "x".to_owned(),
                    source: source(),
                },
                LockErrorKind::Permission,
                "reading x is not allowed: ",
            ),
            (
                Error::NotSupported { source: source() },
                LockErrorKind::Unsupported,
                "reading x is not supported by this storage: ",
            ),
            (
                generic("status code: 429 "),
                LockErrorKind::Throttled,
                "reading x was refused because of too many calls: ",
            ),
            (
                Error::Generic {
                    store: LOCAL,
                    source: Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull)),
                },
                LockErrorKind::Full,
                "reading x failed, as there is no room left; make some, or choose another place: ",
            ),
            (
                Error::UnknownConfigurationKey {
                    store,
                    key: "k".to_owned(),
                },
                LockErrorKind::Config,
                "reading x failed: ",
            ),
            (
                generic("connection reset"),
                LockErrorKind::Unreachable,
                "reading x failed: ",
            ),
        ] {
            let failed = failed("reading x", error);
            assert_eq!(failed.kind(), kind, "{failed}");
            assert!(failed.message().starts_with(words), "{failed}");
            assert!(std::error::Error::source(&failed).is_some());
        }
        let silent = unanswered("reading x");
        assert_eq!(silent.kind(), LockErrorKind::Unreachable);
        assert_eq!(silent.message(), "reading x was not answered in time");
    }

    #[test]
    fn the_systems_errors_are_told_apart() {
        use std::io::ErrorKind;
        let io = |store, kind| Error::Generic {
            store,
            source: Box::new(std::io::Error::from(kind)),
        };
        for (kind, expected) in [
            (ErrorKind::PermissionDenied, LockErrorKind::Permission),
            (ErrorKind::ReadOnlyFilesystem, LockErrorKind::Permission),
            (ErrorKind::StorageFull, LockErrorKind::Full),
            (ErrorKind::QuotaExceeded, LockErrorKind::Full),
            (ErrorKind::NotADirectory, LockErrorKind::Other),
            (
                ErrorKind::StaleNetworkFileHandle,
                LockErrorKind::Unreachable,
            ),
        ] {
            assert_eq!(classify(&io(LOCAL, kind)), expected);
        }
        let refused = io("S3", ErrorKind::ConnectionRefused);
        assert_eq!(classify(&refused), LockErrorKind::Unreachable);
    }

    #[test]
    fn what_is_no_failure_is_not_transient() {
        let path = || "x".to_owned();
        let source = || "y".into();
        for error in [
            Error::NotFound {
                path: path(),
                source: source(),
            },
            Error::AlreadyExists {
                path: path(),
                source: source(),
            },
            Error::Precondition {
                path: path(),
                source: source(),
            },
            Error::PermissionDenied {
                path: path(),
                source: source(),
            },
        ] {
            assert!(!is_transient(classify(&error)), "{error}");
        }
    }
}
