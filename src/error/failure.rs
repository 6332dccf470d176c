use std::fmt;

/// Why a call failed or a stream ended, without regard to when it happened.
///
/// A cluster client maps what its transport says to one of these (for gRPC: one
/// table over status codes and messages); the machine alone decides whether
/// that means a retry, doubt, or the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FailureKind {
    /// The stream ended as it should after Finish: status OK.
    Finished,
    /// The peer cannot be reached, is starting or is going down: UNAVAILABLE, a
    /// refused connection, a name that does not resolve.
    Unavailable,
    /// The transport broke without a word from the server.
    Transport,
    /// An own deadline passed without an answer.
    Timeout,
    /// CANCELLED with the server's words that the loop was aborted: another
    /// client opened a stream on this store.
    Superseded,
    /// CANCELLED of any other origin: half-closed, unreadable, restarting, made
    /// up by the transport.
    Cancelled,
    /// FAILED_PRECONDITION on a prepare stream: no lease is in force.
    LeaseLost,
    /// UNIMPLEMENTED, or the words of a store whose engine has no such call.
    Unsupported,
    /// TLS did not come about: unknown issuer, wrong name, plain text on the
    /// other side, or a client certificate that is refused again and again.
    Tls,
    /// UNAUTHENTICATED or PERMISSION_DENIED.
    Unauthenticated,
    /// What answers is not the service that was expected there.
    WrongService,
    /// The cluster id does not match the one seen first.
    WrongCluster,
    /// RESOURCE_EXHAUSTED: a message over a limit, or a flood of unread frames.
    ResourceExhausted,
    /// An answer that cannot be understood.
    Malformed,
    /// Any other status.
    Other,
}

impl FailureKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 15] = [
        Self::Finished,
        Self::Unavailable,
        Self::Transport,
        Self::Timeout,
        Self::Superseded,
        Self::Cancelled,
        Self::LeaseLost,
        Self::Unsupported,
        Self::Tls,
        Self::Unauthenticated,
        Self::WrongService,
        Self::WrongCluster,
        Self::ResourceExhausted,
        Self::Malformed,
        Self::Other,
    ];
}

/// A failed call or an ended stream: the kind, and the words that came with it.
///
/// The message never holds keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Failure {
    /// What it is, for decisions.
    pub kind: FailureKind,
    /// What it says, for people.
    pub message: String,
}

impl Failure {
    /// Returns a failure of `kind` that says `message`.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
