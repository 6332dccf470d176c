use std::sync::Arc;

use super::MergeState;
use crate::region::Region;
use crate::sim::model::command::Entry;
use crate::time::Timestamp;

/// What peers of a region tell each other.
#[derive(Clone, Debug)]
pub(in crate::sim) enum Message {
    /// Would you vote for me in the next term?
    PreVote {
        term: u64,
        last: (u64, u64),
    },
    PreVoteReply {
        /// The term asked about.
        term: u64,
        granted: bool,
        /// The term of the one who answers.
        own_term: u64,
    },
    Vote {
        term: u64,
        last: (u64, u64),
        /// A leader transfer: asked for whoever leads now.
        force: bool,
    },
    VoteReply {
        term: u64,
        granted: bool,
    },
    /// Entries, or none: then it is a heartbeat.
    Append {
        term: u64,
        prev_index: u64,
        prev_term: u64,
        entries: Vec<Entry>,
        commit: u64,
        /// When it was sent, so that an answer shows which round it confirms.
        sent: Timestamp,
    },
    AppendReply {
        term: u64,
        ok: bool,
        /// The last index known to match, or a hint where to try.
        index: u64,
        sent: Timestamp,
    },
    /// Everything, for a peer that does not exist yet.
    Snapshot {
        term: u64,
        region: Arc<Region>,
        merge: Option<MergeState>,
        index: u64,
        log_term: u64,
        sent: Timestamp,
    },
    /// There is no such peer here yet.
    NeedSnapshot,
    /// Ask for votes at once.
    TimeoutNow {
        term: u64,
    },
    /// You are no peer of this region any more.
    Gone {
        conf_ver: u64,
    },
}
