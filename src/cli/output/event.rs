use serde::Serialize;

use super::lock::LockTold;
use super::queue::Rank;
use super::simulated::{Simulated, Step};
use super::timing::Timing;
use crate::cli::exit::Outcome;
use crate::progress::Progress;

/// One line of the output.
#[derive(Serialize, Clone, PartialEq, Debug)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A simulated cluster is there.
    Serving {
        pd: String,
        stores: Vec<ServedStore>,
        regions: usize,
        seed: u64,
        faults: String,
    },
    /// A phase began.
    Phase { phase: &'static str, attempt: u32 },
    /// How far the preparation is.
    Progress {
        stores_leased: usize,
        stores: usize,
        regions_confirmed: u64,
        regions: Option<u64>,
        in_flight: u64,
        retrying: u64,
    },
    /// A store was leased by somebody else already.
    ForeignLease { store: u64 },
    /// The hold began.
    Held {
        cluster_id: u64,
        stores: usize,
        regions: u64,
        tso: Option<u64>,
        proof: &'static str,
        attempt: u32,
    },
    /// The command started or ended.
    Command {
        status: CommandStatus,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The hold is lost.
    HoldLost {
        cause: &'static str,
        message: String,
        store: Option<u64>,
    },
    /// What `check` found of one store.
    Store(CheckedStore),
    /// What `check` found of the cluster.
    Cluster(CheckedCluster),
    /// How far `simulate` is.
    Simulating { done: u64, all: u64 },
    /// What `simulate` found.
    Simulated(Box<Simulated>),
    /// What a simulated run is made of.
    Setup {
        seed: u64,
        setup: String,
        /// All of it for people.
        #[serde(skip)]
        line: String,
    },
    /// A step of a simulated run.
    Step(Step),
    /// A fault that can be simulated.
    Fault {
        name: &'static str,
        about: &'static str,
    },
    /// What became of a lock, or who holds it.
    Lock(Box<LockTold>),
    /// Something for people only; not in the JSON lines.
    #[serde(skip)]
    Note(String),
    /// The end. Boxed, since it is the largest.
    Result(Box<RunResult>),
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommandStatus {
    Started,
    Exited,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServedStore {
    pub(crate) id: u64,
    pub(crate) address: String,
}

/// What `check` found of one store.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct CheckedStore {
    pub(crate) store: u64,
    pub(crate) address: String,
    pub(crate) state: &'static str,
    pub(crate) version: String,
    /// Whether it has to be held: no tombstone and no TiFlash.
    pub(crate) takes_part: bool,
    /// Seconds since PD heard of it; `None` when PD does not tell.
    pub(crate) heartbeat_age_s: Option<u64>,
    /// Regions it says to lead; `None` when it did not answer.
    pub(crate) leaders: Option<u64>,
    /// Regions it has a peer of, by PD.
    pub(crate) regions: u64,
    /// Regions it leads, by PD.
    pub(crate) leaders_by_pd: u64,
    /// Regions it leads with a conf change, split or merge under way.
    pub(crate) pending_admin: u64,
    /// Whether it has the calls a run needs; `None` when it did not answer.
    pub(crate) supported: Option<bool>,
    pub(crate) error: Option<String>,
}

/// What `check` found of the cluster.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CheckedCluster {
    pub(crate) cluster_id: u64,
    pub(crate) stores: usize,
    /// Regions that stores say to lead.
    pub(crate) regions: u64,
    /// Regions PD knows.
    pub(crate) regions_by_pd: u64,
    /// Key ranges that no store says to lead.
    pub(crate) gaps: usize,
    /// Key ranges PD knows no region for.
    pub(crate) gaps_by_pd: usize,
    /// Regions PD knows no leader of.
    pub(crate) leaderless_by_pd: u64,
    /// Regions with a conf change, split or merge under way.
    pub(crate) pending_admin: u64,
    /// Everything that keeps a run from starting now.
    pub(crate) problems: Vec<String>,
}

/// How it all ended.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct RunResult {
    #[serde(serialize_with = "name_of")]
    pub(crate) outcome: Outcome,
    pub(crate) kind: Option<&'static str>,
    pub(crate) message: Option<String>,
    pub(crate) store: Option<u64>,
    pub(crate) region: Option<u64>,
    pub(crate) prepare_ms: Option<u64>,
    pub(crate) suspended_ms: Option<u64>,
    pub(crate) released: Vec<u64>,
    pub(crate) unreleased: Vec<Unreleased>,
    /// Where the time went until the hold; `null` when there was none.
    pub(crate) timing: Option<Timing>,
    /// Says to people what the outcome means here, where that is not what it
    /// means as a rule.
    #[serde(skip)]
    pub(crate) headline: Option<&'static str>,
    /// Further lines for people.
    #[serde(skip)]
    pub(crate) remarks: Vec<String>,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unreleased {
    pub(crate) store: u64,
    pub(crate) suspended_for_ms: u64,
}

fn name_of<S: serde::Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(outcome.as_str())
}

impl RunResult {
    /// Returns a result that only has an outcome.
    pub(crate) fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            kind: None,
            message: None,
            store: None,
            region: None,
            prepare_ms: None,
            suspended_ms: None,
            released: Vec::new(),
            unreleased: Vec::new(),
            timing: None,
            headline: None,
            remarks: Vec::new(),
        }
    }

    /// Says to people what the outcome means.
    pub(crate) fn meaning(mut self, headline: &'static str) -> Self {
        self.headline = Some(headline);
        self
    }

    /// Says what went wrong, in a word and in a sentence.
    pub(crate) fn because(mut self, kind: &'static str, message: impl Into<String>) -> Self {
        self.kind = Some(kind);
        self.message = Some(message.into());
        self
    }
}

impl From<Progress> for Event {
    fn from(progress: Progress) -> Self {
        Self::Progress {
            stores_leased: progress.stores_leased,
            stores: progress.stores,
            regions_confirmed: progress.regions_confirmed,
            regions: progress.regions,
            in_flight: progress.in_flight,
            retrying: progress.retrying,
        }
    }
}

impl Event {
    /// Returns whether this only says how far something is.
    pub(super) fn is_progress(&self) -> bool {
        matches!(self, Self::Progress { .. } | Self::Simulating { .. })
    }

    /// Returns what may be left out when nobody reads.
    pub(super) fn rank(&self) -> Rank {
        match self {
            Self::Progress { .. } | Self::Simulating { .. } => Rank::Fleeting,
            Self::Phase { .. } | Self::ForeignLease { .. } | Self::Store(_) | Self::Note(_) => {
                Rank::Ordinary
            }
            Self::Serving { .. }
            | Self::Held { .. }
            | Self::Command { .. }
            | Self::HoldLost { .. }
            | Self::Cluster(_)
            | Self::Lock(_)
            | Self::Simulated(_)
            | Self::Setup { .. }
            | Self::Step(_)
            | Self::Fault { .. }
            | Self::Result(_) => Rank::Vital,
        }
    }
}

/// An event and when it happened.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Stamped {
    #[serde(flatten)]
    pub(crate) event: Event,
    /// Milliseconds since the program started.
    pub(crate) t_ms: u64,
    /// RFC 3339, UTC.
    pub(crate) at: String,
}

impl Stamped {
    /// Returns the JSON line, with its newline. `None` for what is for people
    /// only.
    pub(crate) fn json_line(&self) -> Option<String> {
        if matches!(self.event, Event::Note(_)) {
            return None;
        }
        let mut line = serde_json::to_string(self).ok()?;
        line.push('\n');
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: Event) -> String {
        let stamped = Stamped {
            event,
            t_ms: 12,
            at: "2026-01-02T03:04:05.678Z".to_owned(),
        };
        stamped.json_line().expect("is for programs")
    }

    #[test]
    fn lines_have_the_agreed_shape() {
        let result = RunResult {
            released: vec![1, 2],
            unreleased: vec![Unreleased {
                store: 3,
                suspended_for_ms: 7_000,
            }],
            ..RunResult::new(Outcome::Ok)
        };
        assert_eq!(
            line(Event::Result(Box::new(result))),
            "{\"event\":\"result\",\"outcome\":\"ok\",\"kind\":null,\"message\":null,\
             \"store\":null,\"region\":null,\"prepare_ms\":null,\"suspended_ms\":null,\
             \"released\":[1,2],\"unreleased\":[{\"store\":3,\"suspended_for_ms\":7000}],\
             \"timing\":null,\
             \"t_ms\":12,\"at\":\"2026-01-02T03:04:05.678Z\"}\n"
        );
        assert_eq!(
            line(Event::Progress {
                stores_leased: 0,
                stores: 3,
                regions_confirmed: 0,
                regions: None,
                in_flight: 0,
                retrying: 0
            }),
            "{\"event\":\"progress\",\"stores_leased\":0,\"stores\":3,\
             \"regions_confirmed\":0,\"regions\":null,\"in_flight\":0,\"retrying\":0,\
             \"t_ms\":12,\"at\":\"2026-01-02T03:04:05.678Z\"}\n"
        );
        assert_eq!(
            line(Event::Command {
                status: CommandStatus::Exited,
                code: None,
                signal: Some(9)
            }),
            "{\"event\":\"command\",\"status\":\"exited\",\"code\":null,\"signal\":9,\
             \"t_ms\":12,\"at\":\"2026-01-02T03:04:05.678Z\"}\n"
        );
    }
}
