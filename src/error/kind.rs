use std::fmt;

/// What went wrong, coarsely: enough to decide what to do next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot work; found before anything was dialled.
    Config,
    /// The prepare deadline passed before the hold began.
    PrepareTimeout,
    /// A store, or PD, could not be reached until the deadline.
    Unreachable,
    /// A store is too old for the call, or its engine has no such call.
    Unsupported,
    /// TLS did not come about, or the client certificate is refused.
    Tls,
    /// The peer refuses our identity.
    Unauthenticated,
    /// What answers at that address is not the service or store expected there.
    WrongService,
    /// The endpoints belong to different clusters.
    WrongCluster,
    /// Another client opened a stream on a store of ours.
    Superseded,
    /// Another client's lease was in force and the configuration says to refuse.
    ForeignLease,
    /// A store's lease lapsed, or can no longer be trusted.
    LeaseLost,
    /// A store's stream ended during the hold.
    StreamLost,
    /// The hold passed its maximum length.
    HoldTimeout,
    /// The lock that guards the run was lost.
    LockLost,
    /// At the end a store did not confirm that its lease was in force.
    ReleaseUnconfirmed,
    /// The lock that guards the run is held by somebody else.
    Locked,
    /// What lies in the lock's place cannot be understood.
    LockBroken,
    /// There is no room left for the lock: a disk or a quota is full.
    StorageFull,
    /// Cancelled by the caller.
    Cancelled,
    /// A property of the simulated cluster was violated.
    Oracle,
    /// A failure that nobody expected; please report it.
    Internal,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 21] = [
        Self::Config,
        Self::PrepareTimeout,
        Self::Unreachable,
        Self::Unsupported,
        Self::Tls,
        Self::Unauthenticated,
        Self::WrongService,
        Self::WrongCluster,
        Self::Superseded,
        Self::ForeignLease,
        Self::LeaseLost,
        Self::StreamLost,
        Self::HoldTimeout,
        Self::LockLost,
        Self::ReleaseUnconfirmed,
        Self::Locked,
        Self::LockBroken,
        Self::StorageFull,
        Self::Cancelled,
        Self::Oracle,
        Self::Internal,
    ];

    /// Returns the kind's name in snake case, as the program prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::PrepareTimeout => "prepare_timeout",
            Self::Unreachable => "unreachable",
            Self::Unsupported => "unsupported",
            Self::Tls => "tls",
            Self::Unauthenticated => "unauthenticated",
            Self::WrongService => "wrong_service",
            Self::WrongCluster => "wrong_cluster",
            Self::Superseded => "superseded",
            Self::ForeignLease => "foreign_lease",
            Self::LeaseLost => "lease_lost",
            Self::StreamLost => "stream_lost",
            Self::HoldTimeout => "hold_timeout",
            Self::LockLost => "lock_lost",
            Self::ReleaseUnconfirmed => "release_unconfirmed",
            Self::Locked => "locked",
            Self::LockBroken => "lock_broken",
            Self::StorageFull => "storage_full",
            Self::Cancelled => "cancelled",
            Self::Oracle => "oracle",
            Self::Internal => "internal",
        }
    }

    /// Returns whether the same call can succeed later without a change of
    /// configuration, version or certificate.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::PrepareTimeout
            | Self::Unreachable
            | Self::Superseded
            | Self::ForeignLease
            | Self::LeaseLost
            | Self::StreamLost
            | Self::HoldTimeout
            | Self::LockLost
            | Self::ReleaseUnconfirmed
            | Self::Locked
            | Self::StorageFull => true,
            Self::Config
            | Self::Unsupported
            | Self::LockBroken
            | Self::Tls
            | Self::Unauthenticated
            | Self::WrongService
            | Self::WrongCluster
            | Self::Cancelled
            | Self::Oracle
            | Self::Internal => false,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
