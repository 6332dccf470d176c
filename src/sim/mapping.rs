//! What the model's answers mean in the terms of a cluster client, as the gRPC
//! client would have it.

use std::time::Duration;

use crate::error::{Failure, FailureKind};
use crate::region::{RegionError, RegionErrorKind};
use crate::sim::model::{Code, ModelRegionError, RegionErrorDetail, Status};

/// What a store says to the older of two streams.
const ABORTED: &str = "the loop has been aborted by server";
/// What a store with the partitioned engine says.
const NO_SUCH_ENGINE: &str = "doesn't support snapshot backup yet";
/// The only mark of a wait that is refused because of an earlier one.
const DUPLICATED: &str = "note = Some(Duplicated)";

pub(in crate::sim) fn from_status(status: Status) -> Failure {
    let kind = match status.code {
        Code::Ok => FailureKind::Finished,
        Code::Cancelled if status.message.contains(ABORTED) => FailureKind::Superseded,
        Code::Cancelled => FailureKind::Cancelled,
        Code::Unknown => FailureKind::Transport,
        Code::DeadlineExceeded => FailureKind::Timeout,
        Code::ResourceExhausted => FailureKind::ResourceExhausted,
        Code::FailedPrecondition => FailureKind::LeaseLost,
        Code::Unimplemented => FailureKind::Unsupported,
        Code::Internal if status.message.contains(NO_SUCH_ENGINE) => FailureKind::Unsupported,
        Code::Unavailable => FailureKind::Unavailable,
        Code::Unauthenticated => FailureKind::Unauthenticated,
        Code::InvalidArgument | Code::Internal => FailureKind::Other,
    };
    Failure::new(kind, status.message)
}

pub(in crate::sim) fn from_region_error(error: ModelRegionError) -> RegionError {
    let kind = match &error.detail {
        RegionErrorDetail::None if error.message.contains(DUPLICATED) => {
            RegionErrorKind::Duplicated
        }
        RegionErrorDetail::NotLeader { .. } => RegionErrorKind::NotLeader,
        RegionErrorDetail::RegionNotFound { .. } => RegionErrorKind::RegionNotFound,
        RegionErrorDetail::EpochNotMatch { .. } => {
            // The store's words show the keys of its region.
            return RegionError::new(RegionErrorKind::EpochNotMatch, "epoch not match");
        }
        RegionErrorDetail::ServerIsBusy { backoff_ms, .. } => RegionErrorKind::ServerIsBusy {
            backoff: Duration::from_millis(*backoff_ms),
        },
        RegionErrorDetail::StaleCommand => RegionErrorKind::StaleCommand,
        RegionErrorDetail::StoreNotMatch { .. } | RegionErrorDetail::MismatchPeerId { .. } => {
            RegionErrorKind::WrongPeer
        }
        RegionErrorDetail::ReadIndexNotReady { .. }
        | RegionErrorDetail::ProposalInMergingMode { .. }
        | RegionErrorDetail::DataIsNotReady { .. }
        | RegionErrorDetail::RegionNotInitialized { .. } => RegionErrorKind::NotReady,
        RegionErrorDetail::DiskFull { .. } | RegionErrorDetail::RecoveryInProgress { .. } => {
            RegionErrorKind::Unserved
        }
        RegionErrorDetail::None | RegionErrorDetail::ApiVersionNotMatched => RegionErrorKind::Other,
    };
    RegionError::new(kind, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_tell_a_rival_from_a_stream_cut_short() {
        let kind = |message: &str| from_status(Status::new(Code::Cancelled, message)).kind;
        assert_eq!(kind(ABORTED), FailureKind::Superseded);
        assert_eq!(kind("CANCELLED"), FailureKind::Cancelled);
    }

    #[test]
    fn only_the_words_tell_an_engine_without_the_call() {
        let kind = |message: &str| from_status(Status::new(Code::Internal, message)).kind;
        let words = "broadcast_check_pending_admin not implemented; note: Raftstore V2 doesn't \
                     support snapshot backup yet.";
        assert_eq!(kind(words), FailureKind::Unsupported);
        assert_eq!(kind("panic"), FailureKind::Other);
    }

    #[test]
    fn duplicated_is_told_by_its_text() {
        let words = "wait apply has been aborted, perhaps epoch not match or leadership changed, \
                     note = Some(Duplicated)";
        let error = ModelRegionError::new(RegionErrorDetail::None, words);
        assert_eq!(from_region_error(error).kind, RegionErrorKind::Duplicated);
        let error = ModelRegionError::new(RegionErrorDetail::None, "note = None");
        assert_eq!(from_region_error(error).kind, RegionErrorKind::Other);
    }

    #[test]
    fn keys_do_not_get_into_messages() {
        let error = ModelRegionError::new(
            RegionErrorDetail::EpochNotMatch {
                current: Vec::new(),
            },
            "start_key: 7480",
        );
        assert!(!from_region_error(error).message.contains("7480"));
    }
}
