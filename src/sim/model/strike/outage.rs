use std::time::Duration;

use rand::Rng;

use super::Strike;
use crate::region::{RegionId, StoreId};
use crate::sim::fault::{FaultKind, log_uniform};
use crate::sim::model::calls::CallKind;
use crate::sim::model::node::Life;
use crate::sim::model::peer::{PeerTimer, Role};
use crate::sim::model::{Answer, CallId, Cluster, Code, Status};
use crate::time::Timestamp;

impl Cluster {
    pub(super) fn any_store(
        &mut self,
        fits: impl Fn(&crate::sim::model::node::StoreNode) -> bool,
    ) -> Option<StoreId> {
        let stores: Vec<StoreId> = self
            .stores
            .values()
            .filter(|node| node.info.takes_part() && fits(node))
            .map(|node| node.info.id)
            .collect();
        if stores.is_empty() {
            return None;
        }
        stores.get(self.rng.random_range(0..stores.len())).copied()
    }

    pub(super) fn begin_cut_store(&mut self) -> bool {
        let Some(store) = self.any_store(|node| node.life == Life::Up) else {
            return false;
        };
        if !self.net.cut_off(store) {
            return false;
        }
        self.network_changed(&[store], false);
        let delay = self.lasting(100);
        self.strike_after(delay, Strike::MendStore(store));
        true
    }

    pub(super) fn begin_cut_link(&mut self) -> bool {
        let (Some(a), Some(b)) = (self.any_store(|_| true), self.any_store(|_| true)) else {
            return false;
        };
        if !self.net.cut(a, b) {
            return false;
        }
        self.network_changed(&[a, b], false);
        let delay = self.lasting(100);
        self.strike_after(delay, Strike::MendLink(a, b));
        true
    }

    pub(in crate::sim::model) fn begin_pd(&mut self, kind: FaultKind) -> bool {
        let until = self.now + self.lasting(50);
        match kind {
            FaultKind::PdLag => {
                let most = self.plan.longest.as_micros() as u64;
                let lag = log_uniform(&mut self.rng, 10_000, most);
                self.pd.lag = (until, lag);
            }
            FaultKind::PdLeaderChange => {
                let down = log_uniform(&mut self.rng, 20_000, 3_000_000);
                self.pd.down_until = self.now + Duration::from_micros(down);
            }
            FaultKind::PdRestart => {
                self.pd.restart();
                let down = log_uniform(&mut self.rng, 20_000, 3_000_000);
                let down = Duration::from_micros(down);
                self.pd.down_until = self.now + down;
                let within = self.lasting(100);
                let report = Strike::ReportLeaders(within);
                self.strike_after(down + Duration::from_micros(1), report);
            }
            _ => {
                let regions: Vec<RegionId> = self.leaders().iter().map(|at| at.region).collect();
                for region in regions {
                    if self.rng.random_ratio(1, 4) {
                        let only_leader = kind == FaultKind::PdLeaderless;
                        self.pd.hide(region, until, only_leader);
                    }
                }
            }
        }
        true
    }

    pub(super) fn begin_slowness(&mut self, kind: FaultKind) -> bool {
        let until = self.now + self.lasting(50);
        let Some(store) = self.any_store(|node| node.life == Life::Up) else {
            return false;
        };
        let factor = log_uniform(&mut self.rng, 2, 200) as u32;
        let percent = self.rng.random_range(3..60);
        let slow = log_uniform(
            &mut self.rng,
            1_000,
            self.plan.longest.as_micros() as u64 / 4,
        );
        let stuck = self.now + Duration::from_micros(log_uniform(&mut self.rng, 50_000, 8_000_000));
        let (now, longest) = (self.now, self.plan.longest);
        let Some(node) = self.stores.get_mut(&store) else {
            return false;
        };
        match kind {
            FaultKind::SlowApply => node.slow_apply = (until, factor),
            FaultKind::RegionError => node.errors = (until, percent),
            FaultKind::Busy => node.busy = (until, percent),
            FaultKind::SlowAnswer => {
                node.slow_answer = (until, slow);
                // Half of them get slower and slower.
                node.slower_since = percent.is_multiple_of(2).then_some(now);
                if percent.is_multiple_of(4) {
                    node.slow_answer = (now + longest, slow * 4);
                }
            }
            _ => {
                node.stuck_until = stuck;
                self.network_changed(&[store], false);
                let delay = stuck.saturating_duration_since(self.now);
                self.strike_after(delay + Duration::from_micros(5), Strike::Unstuck(store));
            }
        }
        true
    }

    /// A store goes down and comes back, in the steps in which a real one does:
    /// its service outlives its raft part, and precedes it.
    pub(super) fn begin_restart(&mut self) -> bool {
        let Some(store) = self.any_store(|node| node.life == Life::Up) else {
            return false;
        };
        let going = Duration::from_micros(log_uniform(&mut self.rng, 10, 500_000));
        let down = self.lasting(50);
        let coming = Duration::from_micros(log_uniform(&mut self.rng, 10, 500_000));
        self.set_life(store, Life::ServiceOnly);
        self.strike_after(going, Strike::Live(store, Life::Down));
        self.strike_after(going + down, Strike::Live(store, Life::ServiceOnly));
        self.strike_after(going + down + coming, Strike::Live(store, Life::Up));
        true
    }

    pub(super) fn begin_gone(&mut self) -> bool {
        let Some(store) = self.any_store(|node| node.life == Life::Up) else {
            return false;
        };
        self.set_life(store, Life::Down);
        if let Some(node) = self.stores.get_mut(&store) {
            node.gone = true;
        }
        true
    }

    /// Moves a store process from one state to another.
    pub(in crate::sim::model) fn set_life(&mut self, store: StoreId, life: Life) {
        let now = self.now;
        let Some(node) = self.stores.get_mut(&store) else {
            return;
        };
        if node.gone || node.life == life {
            return;
        }
        let before = std::mem::replace(&mut node.life, life);
        match life {
            Life::Down => {
                node.down_since = now;
                if node.lease.is_suspended(now) {
                    self.history.lease_ended(store, now);
                }
                node.lease.forget();
                // What was waited for in memory is forgotten.
                for peer in node.peers.values_mut() {
                    peer.wait = None;
                    peer.role = Role::Follower;
                    peer.leader = None;
                    peer.armed = Default::default();
                    peer.hold_until = Timestamp::ZERO;
                    peer.committed_split = 0;
                    peer.committed_merge = 0;
                    peer.pending_conf = 0;
                }
                self.break_calls(store);
                self.network_changed(&[store], false);
            }
            Life::ServiceOnly if before == Life::Up => self.network_changed(&[store], false),
            Life::ServiceOnly => {}
            Life::Up => {
                self.resume_peers(store);
                self.network_changed(&[store], true);
            }
        }
    }

    /// Starts what a store's peers do by themselves after a restart.
    fn resume_peers(&mut self, store: StoreId) {
        let Some(node) = self.stores.get(&store) else {
            return;
        };
        let work: Vec<(RegionId, bool, bool)> = node
            .peers
            .values()
            .map(|peer| {
                let behind = peer.applied < peer.commit;
                (peer.region.id, behind, peer.merge.is_some())
            })
            .collect();
        for (region, behind, merging) in work {
            if behind {
                let delay = self.jittered(self.plan.timing.apply_delay);
                self.arm(store, region, PeerTimer::Apply, delay);
            }
            if merging {
                let delay = self.jittered(self.plan.timing.merge_check);
                self.arm(store, region, PeerTimer::Merge, delay);
            }
        }
    }

    /// Draws one of the clients' streams that are served.
    fn any_stream(&mut self) -> Option<CallId> {
        let streams: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(id, call)| {
                let open = matches!(&call.kind, CallKind::Stream(stream)
                    if stream.serving && !stream.swallows);
                open && !id.is_internal()
            })
            .map(|(&id, _)| id)
            .collect();
        if streams.is_empty() {
            return None;
        }
        streams
            .get(self.rng.random_range(0..streams.len()))
            .copied()
    }

    pub(super) fn begin_stream_cut(&mut self) -> bool {
        let stream = self.any_stream();
        if let Some(call) = stream {
            self.break_stream(call);
        }
        stream.is_some()
    }

    pub(super) fn begin_half_open(&mut self) -> bool {
        let stream = self.any_stream();
        stream.is_some_and(|call| self.mute_stream(call))
    }

    /// Ends all faults; what they broke is mended, save stores that are gone.
    pub(super) fn stop_faults(&mut self) {
        self.triggers.stopped = true;
        self.history.stopped = Some(self.now);
        self.triggers.merges_held_until = Timestamp::ZERO;
        self.net.mend_all();
        self.pd.mend();
        let stores: Vec<StoreId> = self.stores.keys().copied().collect();
        for store in stores {
            self.set_life(store, Life::Up);
            if let Some(node) = self.stores.get_mut(&store) {
                let past = Timestamp::ZERO;
                node.stuck_until = past;
                node.slow_apply.0 = past;
                node.slow_answer.0 = past;
                node.busy.0 = past;
                node.errors.0 = past;
                node.client_delay.0 = past;
                node.peer_delay.0 = past;
                node.finish_fault = None;
                for peer in node.peers.values_mut() {
                    peer.deaf_until = past;
                    peer.hold_until = past;
                }
            }
        }
        self.hurry_applies();
        self.break_muted_streams();
        self.report_leaders(Duration::from_millis(200));
        self.leave_all_joints();
        for region in self.ailing_regions() {
            self.region_disturbed(region, true);
        }
    }

    /// What was to be applied slowly is not any more.
    fn hurry_applies(&mut self) {
        let mut behind = Vec::new();
        for node in self.stores.values_mut() {
            for peer in node.peers.values_mut() {
                if std::mem::take(&mut peer.armed.apply) {
                    behind.push((peer.store, peer.region.id));
                }
            }
        }
        for (store, region) in behind {
            let delay = self.jittered(self.plan.timing.apply_delay);
            self.arm(store, region, PeerTimer::Apply, delay);
        }
    }

    /// A stream that swallowed everything is found dead by the transport.
    fn break_muted_streams(&mut self) {
        let mut broken = Vec::new();
        for (&id, call) in &mut self.calls {
            if let CallKind::Stream(stream) = &mut call.kind
                && stream.swallows
                && stream.serving
                && !id.is_internal()
            {
                broken.push(id);
            }
        }
        for call in broken {
            let status = Status::new(Code::Unavailable, "keepalive ping timed out");
            self.answer_muted(call, Answer::End(status));
        }
    }

    /// Returns the regions that have no leader, or one that not all follow.
    fn ailing_regions(&self) -> Vec<RegionId> {
        let mut regions: Vec<RegionId> = self
            .stores
            .values()
            .flat_map(|node| {
                let store = node.info.id;
                node.peers
                    .values()
                    .filter(move |peer| {
                        let lagging = peer.leader_state().is_some_and(|leader| {
                            let last = peer.last_index();
                            let mut others = leader.progress.iter();
                            others.any(|(&id, p)| id != peer.id && p.matched < last)
                        });
                        lagging || !self.leader_alive(store, peer.region.id)
                    })
                    .map(|peer| peer.region.id)
            })
            .collect();
        regions.sort_unstable();
        regions.dedup();
        regions
    }
}
