use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;

use super::aim::Aim;
use crate::region::{PeerId, RegionId, StoreId};
use crate::sim::fault::{FaultKind, log_uniform};
use crate::sim::model::event::{Event, PeerAddress};
use crate::sim::model::node::Life;
use crate::sim::model::{CallId, Cluster};
use crate::time::Timestamp;

/// A moment of a run, as the stores see it, at which a fault hurts most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::sim::model) enum Moment {
    Open,
    Update,
    Wait,
    Listing,
    Read,
    Finish,
}

/// A fault, or a later step of one.
#[derive(Clone, Debug)]
pub(in crate::sim::model) enum Strike {
    Begin(FaultKind),
    /// All faults stop.
    Stop,
    MendStore(StoreId),
    MendLink(StoreId, StoreId),
    /// A peer hears the others again.
    Heard(RegionId),
    Unstuck(StoreId),
    Live(StoreId, Life),
    /// A joint configuration is left.
    LeaveJoint(RegionId, u32),
    /// A voter is added where one was removed.
    AddVoter(RegionId, StoreId, u32),
    /// A leader that was elected in another's place loses its peers.
    LoseQuorum(RegionId, StoreId, u32),
    RivalEnds(CallId),
    /// PD hears of all leaders.
    ReportLeaders(Duration),
    /// A write, at one region.
    Write(StoreId, RegionId, PeerId),
    /// A fault that waits for a phase, with the tries left.
    Aimed(Aim, u32),
    /// A leader is not heard for some election timeouts.
    Silence(PeerAddress),
    /// A leader comes back after another one was elected.
    Return(PeerAddress, u32),
    /// A rival comes back, with the rounds left.
    RivalOpens(StoreId, u32),
    /// A Finish that lay about is served.
    FinishServed(CallId),
    /// Calls whose other end is gone are found dead.
    FoundDead(Vec<CallId>),
}

/// Faults that wait for their moment, and what else lasts.
#[derive(Clone, Debug, Default)]
pub(in crate::sim::model) struct Triggers {
    waiting: Vec<(Moment, u32, Duration, FaultKind)>,
    seen: BTreeMap<Moment, u32>,
    pub(in crate::sim::model) stopped: bool,
    /// Until then no merge takes its second step.
    pub(in crate::sim::model) merges_held_until: Timestamp,
    /// Faults that wait for a phase.
    pub(in crate::sim::model) aims: Vec<Aim>,
    /// Where and how often a rival comes back, by its stream.
    pub(in crate::sim::model) rounds_left: BTreeMap<CallId, (StoreId, u32)>,
}

impl Cluster {
    /// Decides when each fault of the plan strikes: a third of them at some time,
    /// the others at a moment of the run.
    pub(in crate::sim::model) fn schedule_strikes(&mut self) {
        let active = self.plan.warm_up + self.plan.stop_after;
        let active_micros = active.as_micros() as u64;
        let stores = u32::try_from(self.stores.len()).unwrap_or(u32::MAX);
        for (kind, count) in self.plan.strikes.clone() {
            if kind.waits_for_finish() {
                for _ in 0..count {
                    self.arm_finish(kind);
                }
                continue;
            }
            for _ in 0..count {
                let at = Duration::from_micros(self.rng.random_range(0..=active_micros));
                if self.rng.random_ratio(1, 3) {
                    self.queue
                        .push(self.start + at, Event::Strike(Strike::Begin(kind)));
                    continue;
                }
                let trigger = if kind.needs_no_lease() {
                    self.trigger_before_leases(stores)
                } else {
                    self.trigger_within_run(stores)
                };
                let (moment, nth, delay) = trigger;
                self.triggers.waiting.push((moment, nth, delay, kind));
            }
        }
        self.schedule_aims();
        if !self.plan.strikes.is_empty() || !self.plan.aims.is_empty() {
            self.queue
                .push(self.start + active, Event::Strike(Strike::Stop));
        }
    }

    /// Draws a moment shortly before the first leases.
    fn trigger_before_leases(&mut self, stores: u32) -> (Moment, u32, Duration) {
        let nth = self.rng.random_range(1..=stores);
        let delay = log_uniform(&mut self.rng, 100, 400_000);
        (Moment::Open, nth, Duration::from_micros(delay))
    }

    fn trigger_within_run(&mut self, stores: u32) -> (Moment, u32, Duration) {
        let (moment, nth) = match self.rng.random_range(0..10) {
            0..3 => (Moment::Update, self.rng.random_range(1..=3 * stores)),
            3..5 => (Moment::Wait, self.rng.random_range(1..=2 * stores)),
            5..7 => (Moment::Listing, self.rng.random_range(1..=5 * stores)),
            7..9 => (Moment::Read, self.rng.random_range(1..=60)),
            _ => (Moment::Finish, 1),
        };
        let delay = log_uniform(&mut self.rng, 50, 3_000_000);
        (moment, nth, Duration::from_micros(delay))
    }

    /// Lets the faults come that wait for this moment.
    pub(in crate::sim::model) fn moment(&mut self, moment: Moment) {
        if self.triggers.waiting.is_empty() {
            return;
        }
        let seen = self.triggers.seen.entry(moment).or_default();
        *seen += 1;
        let seen = *seen;
        let mut due = Vec::new();
        self.triggers.waiting.retain(|&(wanted, nth, delay, kind)| {
            let is_due = wanted == moment && nth == seen;
            if is_due {
                due.push((delay, kind));
            }
            !is_due
        });
        for (delay, kind) in due {
            self.after(delay, Event::Strike(Strike::Begin(kind)));
        }
    }

    pub(in crate::sim::model) fn strike(&mut self, strike: Strike) {
        match strike {
            Strike::Begin(kind) => {
                if !self.triggers.stopped && self.begin(kind) {
                    self.history.struck(kind, self.phase);
                }
            }
            Strike::Stop => self.stop_faults(),
            Strike::MendStore(store) => {
                if self.net.join(store) {
                    self.network_changed(&[store], true);
                }
            }
            Strike::MendLink(a, b) => {
                if self.net.mend(a, b) {
                    self.network_changed(&[a, b], true);
                }
            }
            Strike::Heard(region) => self.region_disturbed(region, true),
            Strike::Unstuck(store) => self.network_changed(&[store], true),
            Strike::Live(store, life) => {
                if !self.triggers.stopped {
                    self.set_life(store, life);
                }
            }
            Strike::LeaveJoint(region, tries) => self.leave_joint(region, tries),
            Strike::AddVoter(region, store, tries) => self.add_voter(region, store, tries),
            Strike::LoseQuorum(region, old, tries) => self.lose_quorum(region, old, tries),
            Strike::RivalEnds(call) => self.rival_ends(call),
            Strike::ReportLeaders(within) => self.report_leaders(within),
            Strike::Write(store, region, peer) => self.write(store, region, peer),
            later => self.strike_more(later),
        }
    }

    fn strike_more(&mut self, strike: Strike) {
        match strike {
            Strike::Aimed(aim, tries) => self.strike_aimed(aim, tries),
            Strike::Silence(at) => {
                let timeout = self.plan.timing.election_timeout;
                let leads = self.leaders().contains(&at);
                if leads && !self.triggers.stopped {
                    let lasting = timeout * self.rng.random_range(2..6);
                    self.silence(at, lasting);
                }
            }
            Strike::Return(old, looks) => self.leader_returns(old, looks),
            Strike::RivalOpens(store, rounds) if !self.triggers.stopped => {
                self.rival_opens(store, rounds);
            }
            Strike::FinishServed(call) => self.finish_served(call),
            Strike::FoundDead(calls) => self.found_dead(&calls),
            _ => {}
        }
    }

    pub(super) fn begin(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Write => self.begin_writes(),
            FaultKind::Split => self.begin_split(),
            FaultKind::Merge => self.begin_merge(),
            FaultKind::SlowMerge => self.begin_slow_merge(),
            FaultKind::ConfChange => self.begin_conf_change(),
            FaultKind::Joint => self.begin_joint(false),
            FaultKind::Transfer => self.begin_transfer(),
            FaultKind::Election => self.begin_election(),
            FaultKind::CutStore => self.begin_cut_store(),
            FaultKind::CutLink => self.begin_cut_link(),
            FaultKind::LostQuorum => self.begin_lost_quorum(),
            FaultKind::HeldAppends => self.begin_held_appends(),
            FaultKind::PdLag
            | FaultKind::PdLeaderChange
            | FaultKind::PdRestart
            | FaultKind::PdLeaderless
            | FaultKind::PdGap => self.begin_pd(kind),
            FaultKind::SlowApply
            | FaultKind::StuckRaft
            | FaultKind::RegionError
            | FaultKind::Busy
            | FaultKind::SlowAnswer => self.begin_slowness(kind),
            FaultKind::StoreRestart => self.begin_restart(),
            FaultKind::StoreGone => self.begin_gone(),
            FaultKind::StreamCut => self.begin_stream_cut(),
            FaultKind::HalfOpen => self.begin_half_open(),
            FaultKind::Rival => self.begin_rival(1),
            FaultKind::NewStore => self.begin_new_store(),
            _ => self.begin_more(kind),
        }
    }

    fn begin_more(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::LeaderReturns => self.begin_leader_returns(),
            FaultKind::PeerDelay | FaultKind::ClientDelay => self.begin_delay(kind),
            FaultKind::RivalAgain => self.begin_rival_again(),
            FaultKind::LateFinish => self.begin_late_finish(),
            FaultKind::StaleFollower => self.begin_stale_follower(),
            FaultKind::LeaderRemoved => self.begin_leader_removed(),
            FaultKind::OrphanWait => self.begin_orphan_wait(),
            FaultKind::TwoClaims => self.begin_two_claims(),
            FaultKind::StoreCrash => self.begin_crash(),
            FaultKind::FinishLate | FaultKind::FinishWrong | FaultKind::FinishLost => {
                self.arm_finish(kind);
                false
            }
            // Whoever runs the client pauses it.
            _ => false,
        }
    }

    /// Draws how long something lasts, at most as long as the plan has it.
    pub(in crate::sim::model) fn lasting(&mut self, shortest_ms: u64) -> Duration {
        let longest = self.plan.longest.as_micros() as u64;
        Duration::from_micros(log_uniform(&mut self.rng, shortest_ms * 1_000, longest))
    }

    pub(in crate::sim::model) fn strike_after(&mut self, delay: Duration, strike: Strike) {
        self.after(delay, Event::Strike(strike));
    }
}
