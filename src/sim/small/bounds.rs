use std::fmt;

use crate::machine::Proof;

/// Something that goes wrong, or at least changes, in a small cluster. Each
/// time costs one of the faults that the bounds allow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A leader that is not suspended proposes a bulk load.
    Ingest,
    /// A leader that is not suspended proposes a split.
    Split,
    /// A leader that is not suspended proposes the first step of a merge.
    Merge,
    /// Another peer is elected; twice makes A→B→A.
    Election,
    /// A leader is cut off from its peers, which elect another one; it goes on
    /// claiming.
    CutOff,
    /// A store restarts and forgets its lease.
    Restart,
    /// A prepare stream breaks; what was under way on it is lost.
    StreamCut,
    /// A dial fails.
    DialFailed,
    /// Another client takes a stream over.
    Rival,
    /// A late Finish of another client lifts a lease.
    LeaseLifted,
    /// Our own process stands still for longer than a lease.
    Pause,
    /// PD's view stands still from now on.
    PdLag,
    /// PD's answer leaves a region out.
    PdGap,
    /// PD's answer knows no leader of a region.
    PdLeaderless,
    /// A call fails.
    CallFailed,
    /// A store refuses a wait or a read since it is busy.
    Busy,
    /// An answer arrives that the machine has long given up on.
    Late,
    /// The owner cancels.
    Cancel,
    /// The lock that guards the run is lost.
    LockLost,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 19] = [
        Self::Ingest,
        Self::Split,
        Self::Merge,
        Self::Election,
        Self::CutOff,
        Self::Restart,
        Self::StreamCut,
        Self::DialFailed,
        Self::Rival,
        Self::LeaseLifted,
        Self::Pause,
        Self::PdLag,
        Self::PdGap,
        Self::PdLeaderless,
        Self::CallFailed,
        Self::Busy,
        Self::Late,
        Self::Cancel,
        Self::LockLost,
    ];

    /// Returns the name that command lines use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Election => "election",
            Self::CutOff => "cut_off",
            Self::Restart => "restart",
            Self::StreamCut => "stream_cut",
            Self::DialFailed => "dial_failed",
            Self::Rival => "rival",
            Self::LeaseLifted => "lease_lifted",
            Self::Pause => "pause",
            Self::PdLag => "pd_lag",
            Self::PdGap => "pd_gap",
            Self::PdLeaderless => "pd_leaderless",
            Self::CallFailed => "call_failed",
            Self::Busy => "busy",
            Self::Late => "late",
            Self::Cancel => "cancel",
            Self::LockLost => "lock_lost",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How large a small cluster is and how much may happen to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Stores, each with a voter of every region. With two of them no leader can
    /// be cut off, since the other one has no quorum.
    pub stores: u8,
    /// Regions at the start.
    pub regions: u8,
    /// The most faults of all kinds together.
    pub faults: u8,
    /// The most faults of each kind.
    pub each: u8,
    /// The faults that may happen.
    pub kinds: Vec<Fault>,
    /// The most times that time passes until the machine's next deadline.
    pub timeouts: u8,
    /// The most attempts; what comes after the last one is not looked at.
    pub attempts: u32,
    /// What the machine takes for a proof. With `Claims` nothing may be cut off,
    /// for that is what it rests on.
    pub proof: Proof,
    /// Whether somebody else's lease is in force at the first store at the start.
    pub foreign: bool,
    /// Whether the first region's leader has proposed a bulk load at the start,
    /// which nobody else has in its log.
    pub open_command: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            stores: 2,
            regions: 2,
            faults: 1,
            each: 2,
            kinds: Fault::ALL.to_vec(),
            timeouts: 2,
            attempts: 2,
            proof: Proof::Read,
            foreign: false,
            open_command: false,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let kinds = if self.kinds == Fault::ALL {
            "any kind".to_owned()
        } else {
            kinds.join(", ")
        };
        write!(
            f,
            "{} stores, {} regions, at most {} faults ({kinds}; {} of each), {} timeouts, {} attempts, proof by {}{}{}",
            self.stores,
            self.regions,
            self.faults,
            self.each,
            self.timeouts,
            self.attempts,
            self.proof.as_str(),
            if self.foreign {
                ", one store leased by somebody else"
            } else {
                ""
            },
            if self.open_command {
                ", a bulk load proposed at the start"
            } else {
                ""
            }
        )
    }
}
