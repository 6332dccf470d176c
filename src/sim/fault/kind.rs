use std::fmt;
use std::str::FromStr;

use crate::progress::PhaseName;

macro_rules! fault_kinds {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// A kind of fault, or of work that goes on in a cluster, that a
        /// [`FaultPlan`](super::FaultPlan) can hold.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum FaultKind {
            $($(#[doc = $doc])* $variant,)*
        }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns what it does, in a sentence.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),*).trim_ascii(),)*
                }
            }
        }
    };
}

fault_kinds! {
    /// Writes and bulk loads that go on everywhere.
    Write = "write",
    /// A region splits.
    Split = "split",
    /// A region merges into its neighbor.
    Merge = "merge",
    /// A merge of which the first step is done before the lease, the second
    /// hangs.
    SlowMerge = "slow_merge",
    /// A peer is added, removed or moved.
    ConfChange = "conf_change",
    /// A joint configuration is entered and left at rest.
    Joint = "joint",
    /// A leader is moved to another store.
    Transfer = "transfer",
    /// A leader is not heard for a while and another one is elected.
    Election = "election",
    /// A store is cut off from the other stores, but not from clients.
    CutStore = "cut_store",
    /// Two stores are cut off from each other.
    CutLink = "cut_link",
    /// The leader of one region is cut off for good, elected anew elsewhere,
    /// and the new one loses its peers with a command in its log.
    LostQuorum = "lost_quorum",
    /// What a leader proposes does not reach its peers for a while.
    HeldAppends = "held_appends",
    /// PD hears of changes late.
    PdLag = "pd_lag",
    /// PD has no leader for a while.
    PdLeaderChange = "pd_leader_change",
    /// PD has restarted and knows no leaders.
    PdRestart = "pd_restart",
    /// PD knows no leader for some regions.
    PdLeaderless = "pd_leaderless",
    /// PD's scan leaves regions out.
    PdGap = "pd_gap",
    /// A store applies slowly.
    SlowApply = "slow_apply",
    /// A store's raft thread is stuck.
    StuckRaft = "stuck_raft",
    /// Waits and reads are refused with all sorts of region errors.
    RegionError = "region_error",
    /// Waits and reads are refused with `server_is_busy`.
    Busy = "busy",
    /// Answers take long.
    SlowAnswer = "slow_answer",
    /// A store restarts and forgets its lease.
    StoreRestart = "store_restart",
    /// A store is gone for good.
    StoreGone = "store_gone",
    /// A stream breaks.
    StreamCut = "stream_cut",
    /// A stream swallows everything in both directions.
    HalfOpen = "half_open",
    /// Another client prepares the same stores.
    Rival = "rival",
    /// A store joins.
    NewStore = "new_store",
    /// The client's own process is paused, also for longer than a lease. Only
    /// what runs the client in virtual time can do that; a served cluster
    /// leaves it out.
    ClientPause = "client_pause",
    /// A leader moves away and comes back (A to B to A).
    LeaderReturns = "leader_returns",
    /// Messages between one store and the others are late.
    PeerDelay = "peer_delay",
    /// Messages between one store and clients are late, in both directions.
    ClientDelay = "client_delay",
    /// Another client takes stores, finishes and takes them again.
    RivalAgain = "rival_again",
    /// Another client was there before; its Finish is served when its stream
    /// has long been taken away, so that it lifts our lease.
    LateFinish = "late_finish",
    /// A follower that has something left to apply answers waits with success
    /// at once.
    StaleFollower = "stale_follower",
    /// A leader is taken out of its region; what waits there is answered with
    /// success when it goes away.
    LeaderRemoved = "leader_removed",
    /// The wait of somebody who is gone lasts, so that ours are answered
    /// `Duplicated`.
    OrphanWait = "orphan_wait",
    /// Two stores claim one region for long: a leader that is cut off and the
    /// one elected in its place.
    TwoClaims = "two_claims",
    /// A store's machine dies and comes back; its streams are found dead only
    /// later.
    StoreCrash = "store_crash",
    /// A store reads a Finish late.
    FinishLate = "finish_late",
    /// A store answers a Finish with 'lapsed' though it had not, or with another
    /// message.
    FinishWrong = "finish_wrong",
    /// A store never answers a Finish: the stream ends without, or nothing
    /// comes any more.
    FinishLost = "finish_lost",
}

impl FaultKind {
    /// Returns whether it can strike while a run is in `phase`.
    ///
    /// What a lease refuses to propose cannot strike once every store is
    /// suspended: not from `WaitApply` to `Hold`, unless a lease is lost (then it
    /// does strike there). What befalls a stream needs one that is open; what
    /// befalls a Finish, one that is sent.
    pub const fn can_strike_in(self, phase: PhaseName) -> bool {
        let suspended = matches!(
            phase,
            PhaseName::WaitApply | PhaseName::Verify | PhaseName::Hold
        );
        match self {
            _ if matches!(phase, PhaseName::Closed) => false,
            Self::Split
            | Self::Merge
            | Self::SlowMerge
            | Self::ConfChange
            | Self::Joint
            | Self::Transfer
            | Self::LeaderRemoved => !suspended,
            Self::LateFinish => matches!(phase, PhaseName::Connect),
            Self::FinishLate | Self::FinishWrong | Self::FinishLost => {
                matches!(phase, PhaseName::Release)
            }
            _ => true,
        }
    }

    /// Returns whether it is set up before and strikes when a Finish is sent.
    pub(in crate::sim) const fn waits_for_finish(self) -> bool {
        matches!(
            self,
            Self::FinishLate | Self::FinishWrong | Self::FinishLost
        )
    }

    /// Returns whether it hinders a leader from hearing of its peers, so that it
    /// may claim what another one leads. Claims prove nothing then.
    pub(in crate::sim) const fn deceives_claims(self) -> bool {
        matches!(
            self,
            Self::Election
                | Self::CutStore
                | Self::CutLink
                | Self::LostQuorum
                | Self::StuckRaft
                | Self::StoreRestart
                | Self::StoreCrash
                | Self::StoreGone
                | Self::LeaderReturns
                | Self::PeerDelay
                | Self::StaleFollower
                | Self::TwoClaims
        )
    }

    /// Returns whether a lease refuses what it does.
    pub(in crate::sim) const fn needs_no_lease(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Split
                | Self::Merge
                | Self::SlowMerge
                | Self::ConfChange
                | Self::Joint
                | Self::Transfer
                | Self::LostQuorum
                | Self::HeldAppends
                | Self::LeaderRemoved
                | Self::LateFinish
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|kind| kind.as_str() == name)
            .copied()
            .ok_or_else(|| format!("there is no fault `{name}`"))
    }
}

/// How much goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FaultLevel {
    /// Nothing: a cluster at rest.
    #[default]
    None,
    /// What a busy but healthy cluster has.
    Light,
    /// Everything.
    Heavy,
}

impl FaultLevel {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Light => "light",
            Self::Heavy => "heavy",
        }
    }
}

impl fmt::Display for FaultLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FaultLevel {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "none" => Ok(Self::None),
            "light" => Ok(Self::Light),
            "heavy" => Ok(Self::Heavy),
            _ => Err(format!(
                "`{name}` is no level of faults; there are none, light and heavy"
            )),
        }
    }
}
