use std::error::Error as StdError;

use etcd_client::Error;
use tonic::{Code, Status};

use crate::error::with_causes;
use crate::lock::{LockError, LockErrorKind};

/// What came of a call instead of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    message: String,
}

/// What a failure means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FailureKind {
    /// The lease is not there: it expired, was revoked, or never was.
    LeaseGone,
    /// The lease is there already, so an earlier call has acted.
    LeaseExists,
    /// The history that was asked for is not kept any more.
    Compacted,
    /// The token is not accepted any more: log in again.
    LoginExpired,
    /// A user was named and the server wants none.
    LoginNotWanted,
    /// Nothing to do about it here.
    Lock(LockErrorKind),
}

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(super) fn timeout() -> Self {
        Self::unreachable("no answer in time")
    }

    pub(super) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Lock(LockErrorKind::Unreachable), message)
    }

    /// Returns the same failure with `context` said before it.
    pub(super) fn within(self, context: &str) -> Self {
        Self {
            message: format!("{context}: {}", self.message),
            ..self
        }
    }

    /// Returns whether another member, or a new connection, may do better.
    pub(super) fn is_of_the_connection(&self) -> bool {
        self.kind == FailureKind::Lock(LockErrorKind::Unreachable)
    }

    /// Returns whether the same call may succeed later.
    pub(super) fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Lock(LockErrorKind::Unreachable | LockErrorKind::Throttled)
        )
    }
}

impl From<Failure> for LockError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Lock(kind) => kind,
            FailureKind::LeaseGone => LockErrorKind::Lost,
            FailureKind::LoginExpired | FailureKind::LoginNotWanted => LockErrorKind::Permission,
            FailureKind::LeaseExists | FailureKind::Compacted => LockErrorKind::Other,
        };
        LockError::new(kind, failure.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::GRpcStatus(status) => of_status(status),
            Error::TransportError(transport) => of_transport(transport),
            // The client's own word for a lease of no time.
            Error::LeaseKeepAliveError(words) if words.contains("lease not found") => {
                Self::new(FailureKind::LeaseGone, "the lease is gone")
            }
            // A stream that ended.
            Error::IoError(_) | Error::WatchError(_) | Error::LeaseKeepAliveError(_) => {
                Self::unreachable(error.to_string())
            }
            _ => Self::new(FailureKind::Lock(LockErrorKind::Other), error.to_string()),
        }
    }
}

/// Returns what it means that a connection could not be made, or broke.
pub(super) fn of_transport(error: &(dyn StdError + 'static)) -> Failure {
    let words = with_causes(error.to_string(), error);
    Failure::new(FailureKind::Lock(transport_kind(&words)), words)
}

fn of_status(status: &Status) -> Failure {
    // A status with a source was made up by our own transport.
    if status.source().is_some() {
        return of_transport(status);
    }
    let words = status.message();
    let shown = if words.is_empty() {
        format!("{:?}", status.code())
    } else {
        words.to_owned()
    };
    Failure::new(classify(status.code(), words), shown)
}

/// The one table from what etcd says to what it means. Where a code has several
/// meanings the words decide; they are part of etcd's interface.
fn classify(code: Code, words: &str) -> FailureKind {
    use LockErrorKind as Kind;
    let says = |part: &str| words.contains(part);
    let kind = match code {
        Code::NotFound if says("lease not found") => return FailureKind::LeaseGone,
        Code::FailedPrecondition if says("lease already exists") => {
            return FailureKind::LeaseExists;
        }
        Code::OutOfRange if says("compacted") => return FailureKind::Compacted,
        Code::FailedPrecondition if says("authentication is not enabled") => {
            return FailureKind::LoginNotWanted;
        }
        Code::InvalidArgument if says("revision of auth store is old") => {
            return FailureKind::LoginExpired;
        }
        Code::Unauthenticated => return FailureKind::LoginExpired,
        // A wrong password, an unknown user, or no user where one is needed.
        Code::InvalidArgument if says("authentication failed") || says("user name") => {
            Kind::Permission
        }
        Code::PermissionDenied => Kind::Permission,
        Code::ResourceExhausted if says("database space exceeded") => Kind::Full,
        Code::ResourceExhausted => Kind::Throttled,
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Aborted => {
            Kind::Unreachable
        }
        // A proxy that speaks HTTP and not gRPC, or an etcd without this call.
        Code::Unimplemented => Kind::Unsupported,
        Code::OutOfRange if says("lease TTL") => Kind::Config,
        _ => Kind::Other,
    };
    FailureKind::Lock(kind)
}

/// What the words of the TLS library mean; a connection that was just lost comes
/// back.
fn transport_kind(words: &str) -> LockErrorKind {
    let says = |part: &str| words.contains(part);
    // The server refuses ours. With TLS 1.3 that is told after the handshake.
    if says("received fatal alert") {
        return LockErrorKind::Permission;
    }
    // We refuse the server's, or it speaks no TLS.
    if says("invalid peer certificate") || says("InvalidContentType") || says("corrupt message") {
        return LockErrorKind::Config;
    }
    LockErrorKind::Unreachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_etcd_has_its_meaning() {
        use FailureKind::{Compacted, LeaseExists, LeaseGone, Lock, LoginExpired, LoginNotWanted};
        use LockErrorKind::{Config, Full, Other, Permission, Throttled, Unreachable, Unsupported};
        for (code, words, meaning) in [
            (
                Code::NotFound,
                "etcdserver: requested lease not found",
                LeaseGone,
            ),
            (
                Code::FailedPrecondition,
                "etcdserver: lease already exists",
                LeaseExists,
            ),
            (
                Code::OutOfRange,
                "etcdserver: mvcc: required revision has been compacted",
                Compacted,
            ),
            (
                Code::Unauthenticated,
                "etcdserver: invalid auth token",
                LoginExpired,
            ),
            (
                Code::InvalidArgument,
                "etcdserver: revision of auth store is old",
                LoginExpired,
            ),
            (
                Code::FailedPrecondition,
                "etcdserver: authentication is not enabled",
                LoginNotWanted,
            ),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                Lock(Permission),
            ),
            (
                Code::InvalidArgument,
                "etcdserver: user name is empty",
                Lock(Permission),
            ),
            (
                Code::PermissionDenied,
                "etcdserver: permission denied",
                Lock(Permission),
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: too many requests",
                Lock(Throttled),
            ),
            (
                Code::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                Lock(Full),
            ),
            (
                Code::Unavailable,
                "etcdserver: no leader",
                Lock(Unreachable),
            ),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
                Lock(Unreachable),
            ),
            (Code::Unimplemented, "unknown service", Lock(Unsupported)),
            (
                Code::OutOfRange,
                "etcdserver: too large lease TTL",
                Lock(Config),
            ),
            (
                Code::InvalidArgument,
                "etcdserver: key is not provided",
                Lock(Other),
            ),
        ] {
            let failure = Failure::from(Error::GRpcStatus(Status::new(code, words)));
            assert_eq!(failure.kind, meaning, "{words}");
            assert_eq!(failure.message, words);
        }
    }

    #[test]
    fn a_lease_of_no_time_is_gone() {
        let error = Error::LeaseKeepAliveError("lease not found".to_owned());
        assert_eq!(Failure::from(error).kind, FailureKind::LeaseGone);
        let error = Error::LeaseKeepAliveError("channel closed".to_owned());
        assert!(Failure::from(error).is_retryable());
    }

    #[test]
    fn refusals_are_permanent_and_lost_connections_are_not() {
        for (words, kind) in [
            ("connection refused", LockErrorKind::Unreachable),
            (
                "invalid peer certificate: UnknownIssuer",
                LockErrorKind::Config,
            ),
            (
                "received fatal alert: CertificateRequired",
                LockErrorKind::Permission,
            ),
        ] {
            assert_eq!(transport_kind(words), kind, "{words}");
        }
    }
}
