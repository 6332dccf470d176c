//! What a failure means where it happened: the one table of rule R10.

use crate::error::{ErrorKind, FailureKind};

/// Where a failure happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A prepare stream before its first lease was handed out.
    Dialing,
    /// A prepare stream whose store may hold our lease.
    Leased,
    /// A listing, a read, a scan or a store list.
    Call,
}

/// What has to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reaction {
    /// Back off and try again; nothing is lost.
    Retry,
    /// What was built on it cannot be trusted any more.
    Doubt,
    /// The store says that no lease is in force.
    LeaseLost,
    /// Another client took the stream; never dial that store again.
    Superseded,
    /// Trying again cannot help.
    Permanent(ErrorKind),
}

/// Returns what follows from a failure of `kind` at `place`.
pub(super) const fn reaction(kind: FailureKind, place: Place) -> Reaction {
    match kind {
        FailureKind::Unsupported => Reaction::Permanent(ErrorKind::Unsupported),
        FailureKind::Tls => Reaction::Permanent(ErrorKind::Tls),
        FailureKind::Unauthenticated => Reaction::Permanent(ErrorKind::Unauthenticated),
        FailureKind::WrongService => Reaction::Permanent(ErrorKind::WrongService),
        FailureKind::WrongCluster => Reaction::Permanent(ErrorKind::WrongCluster),
        FailureKind::Superseded => match place {
            Place::Dialing | Place::Leased => Reaction::Superseded,
            Place::Call => Reaction::Retry,
        },
        FailureKind::LeaseLost => match place {
            Place::Leased => Reaction::LeaseLost,
            Place::Dialing | Place::Call => Reaction::Retry,
        },
        // A stream that ends well without having been asked to is as broken as
        // any other.
        FailureKind::Finished
        | FailureKind::Unavailable
        | FailureKind::Transport
        | FailureKind::Timeout
        | FailureKind::Cancelled
        | FailureKind::ResourceExhausted
        | FailureKind::Malformed
        | FailureKind::Other => match place {
            Place::Leased => Reaction::Doubt,
            Place::Dialing | Place::Call => Reaction::Retry,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r10_one_row_per_kind() {
        use ErrorKind as E;
        use FailureKind as F;
        use Reaction::{Doubt, LeaseLost, Permanent, Retry, Superseded};
        // (kind, dialing, leased, call)
        let table = [
            (F::Finished, Retry, Doubt, Retry),
            (F::Unavailable, Retry, Doubt, Retry),
            (F::Transport, Retry, Doubt, Retry),
            (F::Timeout, Retry, Doubt, Retry),
            (F::Superseded, Superseded, Superseded, Retry),
            (F::Cancelled, Retry, Doubt, Retry),
            (F::LeaseLost, Retry, LeaseLost, Retry),
            (
                F::Unsupported,
                Permanent(E::Unsupported),
                Permanent(E::Unsupported),
                Permanent(E::Unsupported),
            ),
            (
                F::Tls,
                Permanent(E::Tls),
                Permanent(E::Tls),
                Permanent(E::Tls),
            ),
            (
                F::Unauthenticated,
                Permanent(E::Unauthenticated),
                Permanent(E::Unauthenticated),
                Permanent(E::Unauthenticated),
            ),
            (
                F::WrongService,
                Permanent(E::WrongService),
                Permanent(E::WrongService),
                Permanent(E::WrongService),
            ),
            (
                F::WrongCluster,
                Permanent(E::WrongCluster),
                Permanent(E::WrongCluster),
                Permanent(E::WrongCluster),
            ),
            (F::ResourceExhausted, Retry, Doubt, Retry),
            (F::Malformed, Retry, Doubt, Retry),
            (F::Other, Retry, Doubt, Retry),
        ];
        assert_eq!(table.len(), FailureKind::ALL.len());
        for (row, kind) in table.iter().zip(FailureKind::ALL) {
            assert_eq!(row.0, kind);
            assert_eq!(
                reaction(kind, Place::Dialing),
                row.1,
                "{kind:?} while dialing"
            );
            assert_eq!(reaction(kind, Place::Leased), row.2, "{kind:?} when leased");
            assert_eq!(reaction(kind, Place::Call), row.3, "{kind:?} of a call");
        }
    }
}
