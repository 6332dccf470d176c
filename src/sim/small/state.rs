use std::time::Duration;

use super::bounds::{Bounds, Fault};
use super::call::{Call, Claimed};
use super::judge::Judge;
use super::raft::{Command, CommandKind, Group};
use super::store::{LEASE, Lease, Node};
use crate::machine::{Config, Machine};
use crate::progress::PhaseName;
use crate::range::{EndKey, Key, KeyRange};
use crate::time::Timestamp;

/// A machine, the small cluster it deals with, and all that is on the way
/// between them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Small {
    pub(super) machine: Machine,
    /// For how long our process has stood still, so that the machine does not
    /// know of it.
    pub(super) paused: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) groups: Vec<Group>,
    pub(super) next_region: u8,
    /// What PD knows, when that stands still.
    pub(super) frozen: Option<Vec<Claimed>>,
    pub(super) calls: Vec<Call>,
    /// How many faults of each kind there were.
    pub(super) spent: [u8; Fault::ALL.len()],
    pub(super) timeouts: u8,
    pub(super) judge: Judge,
}

/// What lies further ahead than this is never reached within the bounds.
pub(super) const HORIZON: Duration = Duration::from_secs(24 * 3600);
/// The grid on which the machine's deadlines lie: a quarter of a lease.
const GRID: Duration = Duration::from_millis(1250);

impl Small {
    /// Returns the state from which all is explored; `None` when the
    /// configuration is not valid, which it is.
    pub(super) fn start(bounds: &Bounds) -> Option<Self> {
        let week = Duration::from_secs(7 * 24 * 3600);
        let config = Config {
            lease: Duration::from_secs(5),
            margin: Duration::from_secs(1),
            prepare_timeout: week,
            hold_timeout: week,
            ask_timeout: GRID,
            read_timeout: GRID,
            call_timeout: GRID * 2,
            settle: Duration::ZERO,
            backoff_min: GRID,
            backoff_max: GRID,
            window: 2,
            proof: bounds.proof,
            ..Config::default()
        };
        let machine = Machine::new(config, Machine::NORMAL_NOW).ok()?;
        let mut nodes = vec![Node::default(); usize::from(bounds.stores)];
        if bounds.foreign
            && let Some(node) = nodes.first_mut()
        {
            node.lease = Some(Lease {
                left: LEASE,
                is_ours: false,
            });
        }
        let groups = (0..bounds.regions).map(|index| {
            let leader = index % bounds.stores;
            Group::new(index + 1, 2 * index, 2 * index + 2, bounds.stores, leader)
        });
        let mut small = Self {
            machine,
            paused: Duration::ZERO,
            groups: groups.collect(),
            next_region: bounds.regions + 1,
            frozen: None,
            calls: Vec::new(),
            spent: [0; Fault::ALL.len()],
            timeouts: 0,
            judge: Judge::new(bounds.stores),
            nodes,
        };
        if bounds.open_command
            && let Some(group) = small.groups.first_mut()
        {
            group.propose(Command {
                kind: CommandKind::Ingest,
                is_late: false,
            });
        }
        small.drain();
        small.normalize(bounds);
        Some(small)
    }

    /// Returns the machine, in normal form.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the machine's phase.
    pub fn phase(&self) -> PhaseName {
        self.machine.phase()
    }

    /// Returns how often a fault has struck so far.
    pub fn struck(&self, fault: Fault) -> u8 {
        self.spent.get(fault as usize).copied().unwrap_or(0)
    }

    /// Returns whether a store (counted from 1) is suspended.
    pub fn is_suspended(&self, store: u64) -> bool {
        let node = store
            .checked_sub(1)
            .and_then(|at| self.nodes.get(at as usize));
        node.is_some_and(|node| node.lease.is_some())
    }

    /// Returns what of the kind that leases refuse is open, or between the two
    /// steps of a merge, although it was proposed before the leases.
    pub fn unsettled(&self) -> Option<String> {
        self.groups.iter().find_map(Group::unsettled)
    }

    /// Returns which rule the last step broke, and how.
    pub fn broken(&self) -> Option<(&'static str, &str)> {
        let (rule, how) = self.judge.broken.as_ref()?;
        Some((rule, how))
    }

    /// Returns what of note the last step brought about.
    pub fn sights(&self) -> super::Sights {
        self.judge.sights
    }

    pub(super) fn now(&self) -> Timestamp {
        Machine::NORMAL_NOW + self.paused
    }

    pub(super) fn faults(&self) -> u8 {
        self.spent.iter().sum()
    }

    pub(super) fn may(&self, bounds: &Bounds, fault: Fault) -> bool {
        self.faults() < bounds.faults
            && self.struck(fault) < bounds.each
            && bounds.kinds.contains(&fault)
    }

    pub(super) fn group(&self, id: u8) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    pub(super) fn group_mut(&mut self, id: u8) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.id == id)
    }

    /// Returns the end of all keys, as a position.
    pub(super) fn end(&self) -> u8 {
        let ends = self.groups.iter().filter(|group| !group.is_gone);
        ends.map(|group| group.to).max().unwrap_or(0)
    }

    /// Returns what PD knows of the regions, in key order.
    pub(super) fn pd_view(&self) -> Vec<Claimed> {
        if let Some(frozen) = &self.frozen {
            return frozen.clone();
        }
        let alive = self.groups.iter().filter(|group| !group.is_gone);
        let mut view: Vec<_> = alive
            .map(|group| Claimed {
                region: group.id,
                from: group.from,
                to: group.to,
                version: group.version,
                is_pending: false,
                leader: group.leader,
            })
            .collect();
        view.sort_by_key(|region| region.from);
        view
    }

    fn may_any(&self, bounds: &Bounds, faults: &[Fault]) -> bool {
        faults.iter().any(|fault| self.may(bounds, *fault))
    }

    /// Returns whether nothing will change in the regions, so that it does not
    /// matter when a listing or a read is taken in.
    pub(super) fn are_regions_calm(&self, bounds: &Bounds) -> bool {
        let faults = [Fault::Election, Fault::CutOff, Fault::Restart];
        self.are_proposals_over(bounds)
            && !self.may_any(bounds, &faults)
            && self.groups.iter().all(Group::is_calm)
    }

    /// Returns whether no lease will end but by a Finish of ours, and no stream
    /// break, so that it does not matter when a renewal is taken in.
    pub(super) fn are_leases_calm(&self, bounds: &Bounds) -> bool {
        let faults = [
            Fault::Restart,
            Fault::StreamCut,
            Fault::Rival,
            Fault::LeaseLifted,
            Fault::Pause,
        ];
        self.timeouts >= bounds.timeouts && self.paused.is_zero() && !self.may_any(bounds, &faults)
    }

    /// Returns whether nobody proposes what leases refuse, be there one or not.
    pub(super) fn are_proposals_over(&self, bounds: &Bounds) -> bool {
        !self.may_any(bounds, &[Fault::Ingest, Fault::Split, Fault::Merge])
    }
}

/// Returns the keys between two positions, the last of which is `end`.
pub(super) fn key_range(from: u8, to: u8, end: u8) -> KeyRange {
    let start = match from {
        0 => Key::EMPTY,
        at => Key::from(&[at]),
    };
    let until = if to >= end {
        EndKey::Unbounded
    } else {
        EndKey::Bounded(Key::from(&[to]))
    };
    KeyRange::new(start, until).unwrap_or_else(KeyRange::whole)
}

/// Returns the positions of a range.
pub(super) fn positions(range: &KeyRange, end: u8) -> (u8, u8) {
    let at = |key: &Key| key.as_bytes().first().copied().unwrap_or(0);
    (at(range.start()), range.end().as_key().map_or(end, at))
}
