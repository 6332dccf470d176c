use std::time::Duration;

use crate::error::without_controls;
use crate::pb::errorpb;
use crate::region::{RegionError, RegionErrorKind};

/// Reads a store's region error. The words are our own wherever the store's can
/// hold keys.
pub(super) fn region_error(error: &errorpb::Error) -> RegionError {
    use RegionErrorKind as Kind;
    let (kind, message) = if let Some(not_leader) = &error.not_leader {
        (Kind::NotLeader, not_leader_words(not_leader))
    } else if let Some(missing) = &error.region_not_found {
        let id = missing.region_id;
        (Kind::RegionNotFound, format!("region {id} not found"))
    } else if error.epoch_not_match.is_some() {
        (Kind::EpochNotMatch, "epoch not match".to_owned())
    } else if let Some(busy) = &error.server_is_busy {
        let backoff = Duration::from_millis(busy.backoff_ms);
        let words = format!("server is busy: {}", without_keys(&busy.reason));
        (Kind::ServerIsBusy { backoff }, words)
    } else if error.stale_command.is_some() {
        (Kind::StaleCommand, "stale command".to_owned())
    } else if let Some((kind, words)) = settled_by_state(error) {
        (kind, words)
    } else {
        by_words(&error.message)
    };
    RegionError::new(kind, message)
}

/// The sub-messages that say that peer or region cannot serve as they are now.
fn settled_by_state(error: &errorpb::Error) -> Option<(RegionErrorKind, String)> {
    use RegionErrorKind as Kind;
    let found = if let Some(wrong) = &error.store_not_match {
        let (asked, actual) = (wrong.request_store_id, wrong.actual_store_id);
        let words = format!("store not match: asked for store {asked}, this is {actual}");
        (Kind::WrongPeer, words)
    } else if let Some(wrong) = &error.mismatch_peer_id {
        let (asked, actual) = (wrong.request_peer_id, wrong.store_peer_id);
        let words = format!("mismatched peer: asked for peer {asked}, this is {actual}");
        (Kind::WrongPeer, words)
    } else if let Some(not_ready) = &error.read_index_not_ready {
        let reason = without_keys(&not_ready.reason);
        (Kind::NotReady, format!("read index not ready: {reason}"))
    } else if error.proposal_in_merging_mode.is_some() {
        (Kind::NotReady, "the region is being merged".to_owned())
    } else if error.data_is_not_ready.is_some() {
        (Kind::NotReady, "data is not ready".to_owned())
    } else if error.region_not_initialized.is_some() {
        (Kind::NotReady, "region not initialized".to_owned())
    } else if error.max_timestamp_not_synced.is_some() {
        (Kind::NotReady, "max timestamp not synced".to_owned())
    } else if error.disk_full.is_some() {
        (Kind::Unserved, "disk full".to_owned())
    } else if error.recovery_in_progress.is_some() {
        (Kind::Unserved, "recovery in progress".to_owned())
    } else if error.flashback_in_progress.is_some() {
        (Kind::Unserved, "flashback in progress".to_owned())
    } else if error.flashback_not_prepared.is_some() {
        (Kind::Unserved, "flashback not prepared".to_owned())
    } else if error.is_witness.is_some() {
        (Kind::Unserved, "the peer is a witness".to_owned())
    } else if error.key_not_in_region.is_some() {
        (Kind::Other, "key not in region".to_owned())
    } else if error.raft_entry_too_large.is_some() {
        (Kind::Other, "raft entry too large".to_owned())
    } else if error.undetermined_result.is_some() {
        (Kind::Other, "undetermined result".to_owned())
    } else {
        return None;
    };
    Some(found)
}

/// What only the message tells: an aborted wait names its cause in it.
fn by_words(message: &str) -> (RegionErrorKind, String) {
    use RegionErrorKind as Kind;
    let known = [
        (
            "note = Some(Duplicated",
            Kind::Duplicated,
            "an earlier wait is still under way",
        ),
        (
            "note = Some(StaleCommand",
            Kind::StaleCommand,
            "stale command",
        ),
        (
            "note = Some(EpochNotMatch",
            Kind::EpochNotMatch,
            "epoch not match",
        ),
        (
            "note = None",
            Kind::Other,
            "the wait was aborted without a cause",
        ),
        (
            "Duplicated",
            Kind::Duplicated,
            "an earlier wait is still under way",
        ),
    ];
    if is_raftstore_v2(message) {
        return (Kind::Unsupported, without_keys(message));
    }
    for (mark, kind, words) in known {
        if message.contains(mark) {
            return (kind, words.to_owned());
        }
    }
    (Kind::Other, without_keys(message))
}

fn not_leader_words(error: &errorpb::NotLeader) -> String {
    match &error.leader {
        Some(leader) if leader.store_id != 0 => {
            format!("not leader; store {} should be", leader.store_id)
        }
        _ => "not leader; the leader is not known there".to_owned(),
    }
}

/// Whether the words are those of a store with the partitioned engine, which has
/// no snapshot backup.
pub(super) fn is_raftstore_v2(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.contains("raftstore v2") || words.contains("raftstore-v2")
}

/// Returns the words of a server, on one line and not too many, or others in their
/// place when they may hold keys: a server prints regions with their keys into some
/// messages.
pub(super) fn without_keys(words: &str) -> String {
    const LIMIT: usize = 400;
    if words.to_ascii_lowercase().contains("key") {
        return "(words that may hold keys are left out)".to_owned();
    }
    if words.is_empty() {
        return "(no words)".to_owned();
    }
    let end = words.char_indices().nth(LIMIT).map(|(cut, _)| cut);
    without_controls(&words[..end.unwrap_or(words.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::errorpb::Error;
    use crate::pb::metapb;

    /// They end up in lines of a log, and on terminals.
    #[test]
    fn words_of_a_server_stay_on_one_line() {
        let error = said("bad\u{1b}[31m\nerror: made up");
        let message = region_error(&error).message;
        assert!(message.contains("bad\\u{1b}[31m\\nerror"), "{message:?}");
    }

    const ABORTED: &str =
        "wait apply has been aborted, perhaps epoch not match or leadership changed, note = ";

    fn said(note: &str) -> Error {
        Error {
            message: format!("{ABORTED}{note}"),
            ..Error::default()
        }
    }

    /// One row for each error that `errorpb` knows and each that only words tell.
    #[test]
    fn every_error_has_its_kind() {
        use RegionErrorKind as Kind;
        macro_rules! with {
            ($field:ident) => {
                Error {
                    message: "words".to_owned(),
                    $field: Some(Default::default()),
                    ..Error::default()
                }
            };
        }
        let busy = errorpb::ServerIsBusy {
            reason: "[Suspended] wait".to_owned(),
            backoff_ms: 1500,
        };
        let backoff = Duration::from_millis(1500);
        let rows = [
            (with!(not_leader), Kind::NotLeader),
            (with!(region_not_found), Kind::RegionNotFound),
            (with!(key_not_in_region), Kind::Other),
            (with!(epoch_not_match), Kind::EpochNotMatch),
            (
                with!(server_is_busy),
                Kind::ServerIsBusy {
                    backoff: Duration::ZERO,
                },
            ),
            (
                Error {
                    server_is_busy: Some(busy),
                    ..Error::default()
                },
                Kind::ServerIsBusy { backoff },
            ),
            (with!(stale_command), Kind::StaleCommand),
            (with!(store_not_match), Kind::WrongPeer),
            (with!(raft_entry_too_large), Kind::Other),
            (with!(max_timestamp_not_synced), Kind::NotReady),
            (with!(read_index_not_ready), Kind::NotReady),
            (with!(proposal_in_merging_mode), Kind::NotReady),
            (with!(data_is_not_ready), Kind::NotReady),
            (with!(region_not_initialized), Kind::NotReady),
            (with!(disk_full), Kind::Unserved),
            (with!(recovery_in_progress), Kind::Unserved),
            (with!(flashback_in_progress), Kind::Unserved),
            (with!(flashback_not_prepared), Kind::Unserved),
            (with!(is_witness), Kind::Unserved),
            (with!(mismatch_peer_id), Kind::WrongPeer),
            (with!(undetermined_result), Kind::Other),
            (said("Some(Duplicated)"), Kind::Duplicated),
            (
                said("Some(StaleCommand { expected_term: 6, current_term: 7, region_id: 1016 })"),
                Kind::StaleCommand,
            ),
            (
                said("Some(EpochNotMatch(current_regions { id: 1 start_key: 63 }))"),
                Kind::EpochNotMatch,
            ),
            (said("None"), Kind::Other),
            (
                said("Some(x); Raftstore V2 doesn't support snapshot backup yet."),
                Kind::Unsupported,
            ),
            (Error::default(), Kind::Other),
        ];
        for (error, kind) in rows {
            let found = region_error(&error);
            assert_eq!(found.kind, kind, "{error:?}");
            assert!(!found.message.is_empty(), "{error:?}");
        }
    }

    #[test]
    fn keys_stay_out_of_the_words() {
        let region = metapb::Region {
            start_key: b"zzz".to_vec(),
            ..metapb::Region::default()
        };
        let mut error = said("Some(EpochNotMatch(current_regions { start_key: 7A7A7A }))");
        error.epoch_not_match = Some(errorpb::EpochNotMatch {
            current_regions: vec![region],
        });
        assert_eq!(region_error(&error).message, "epoch not match");
        for words in [
            "Key 7A7A is out of [region 1008] [62, 63)",
            "start_key: 7A7A",
        ] {
            let message = region_error(&said(words)).message;
            assert!(!message.contains("7A"), "{message}");
        }
        let long = Error {
            message: "é".repeat(1000),
            ..Error::default()
        };
        assert_eq!(region_error(&long).message.chars().count(), 400);
    }
}
