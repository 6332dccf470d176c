//! The least time for which the stores could have been suspended in a run, and
//! the time for which they were: how much of a standstill is the client's doing.
//!
//! # What is compared
//! From the first `UpdateLease` handed out to the last `Finish` answered, less
//! the time from the hold's begin to the request to end it, which is the
//! caller's. Only runs that finished well in their first attempt have a floor.
//!
//! # The floor
//! It is made of the answers that such a run cannot do without, each as long as
//! it took in this very run, from the effect handed out to its event: so the
//! draws of the model (delays, slow applies, stores in trouble) are on both
//! sides, and what is above the floor is time in which nothing of that was
//! waited for. With
//!
//! - `lease(s)`: the first `UpdateLease` of store `s`,
//! - `wait(r)`, `read(r)`: the wait and the read of region `r` that proved it
//!   (the last ones that succeeded; a wait lasts until the region has applied),
//! - `prove(r)`: the time until region `r` can be proven: `wait(r)` and then
//!   `read(r)`. Where the region changed while it was asked for, not before: a
//!   wait for an epoch counts from the instant at which the leader that gave the
//!   proof had come to that epoch, and a read is served only once that leader,
//!   newly elected, had committed something of its own term. So what a cluster
//!   cannot give to anybody is not the client's doing,
//! - `ask(s)`: the slowest `prove(r)` among the regions of `s`, or
//!   all its waits (or reads) packed into a full window without a gap, the sum
//!   over its regions divided by the window, whichever is longer,
//! - `list(s)`: the last listing of claims of `s` before the hold,
//! - `renew(s)`: the last renewal of `s` answered before the hold,
//! - `finish(s)`: the `Finish` of `s`,
//!
//! it is the sum of
//!
//! 1. the slowest `lease(s)`: no store is asked before all are leased,
//! 2. the longer of: the slowest `ask(s) + list(s)`; the slowest `ask(s)` and,
//!    after it, the slowest `renew(s)`. A listing counts when it was begun after
//!    the proof of what it lists, the renewals after the last proof of all; the
//!    two can go on at the same time,
//! 3. the slowest `finish(s)`.
//!
//! Failed waits and reads, backoffs, looks at PD, second listings, and pauses of
//! the client are no part of it. No run can be below its floor, and that is a
//! test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::machine::{Effect, Event, Machine, Notice, RequestId};
use crate::progress::PhaseName;
use crate::region::{RegionId, StoreId};
use crate::sim::model::Cluster;
use crate::time::Timestamp;

/// How long the stores of a run were suspended on the client's account, and the
/// least that would have done; see the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Standstill {
    /// What it took, the hold itself left out.
    pub took: Duration,
    /// The least possible.
    pub floor: Duration,
    /// The same by part, in order.
    pub parts: [Share; 4],
}

/// A part of a standstill.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Share {
    /// What it took.
    pub took: Duration,
    /// The least possible.
    pub floor: Duration,
}

impl Standstill {
    /// The names of the parts.
    pub const PARTS: [&str; 4] = ["lease", "prove", "verify", "release"];

    /// Returns how many times the floor it took, in thousandths.
    pub fn per_mille(&self) -> u64 {
        ratio(self.took, self.floor)
    }
}

/// Returns `took` in thousandths of `floor`; 1000 when both are nothing.
pub(super) fn ratio(took: Duration, floor: Duration) -> u64 {
    let (took, floor) = (took.as_micros(), floor.as_micros());
    let per_mille = match took.saturating_mul(1_000).checked_div(floor) {
        Some(per_mille) => per_mille,
        None if took == 0 => 1_000,
        None => u128::MAX,
    };
    u64::try_from(per_mille).unwrap_or(u64::MAX)
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.per_mille();
        let (whole, rest) = (times / 1_000, times % 1_000 / 10);
        write!(
            f,
            "{whole}.{rest:02} of the floor, {:?} of {:?}:",
            self.took, self.floor
        )?;
        for (name, share) in Self::PARTS.iter().zip(&self.parts) {
            write!(f, " {name} {:?} of {:?}", share.took, share.floor)?;
        }
        Ok(())
    }
}

/// Books of who waited for what in the first attempt of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Nothing more is of interest: there was doubt.
    closed: bool,
    is_held: bool,
    calls: BTreeMap<RequestId, Sent>,
    waits: BTreeMap<(RequestId, RegionId), Timestamp>,
    reads: BTreeMap<(RequestId, RegionId), Timestamp>,
    streams: BTreeMap<RequestId, StoreId>,
    stores: BTreeMap<StoreId, StoreTimes>,
    regions: BTreeMap<RegionId, RegionTimes>,
    /// When each phase began first.
    phases: BTreeMap<PhaseName, Timestamp>,
    finish_asked: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    store: StoreId,
    at: Timestamp,
    what: Call,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Lease,
    Listing,
    Read,
    Finish,
}

#[derive(Clone, Copy, Default, Debug)]
struct StoreTimes {
    lease: Option<Duration>,
    renewal: Duration,
    listing: Duration,
    finish: Duration,
}

#[derive(Clone, Copy, Debug)]
struct RegionTimes {
    store: StoreId,
    wait: Duration,
    read: Duration,
    /// From the moment when it could be asked for first, until its leader had
    /// its epoch, and until its leader could serve reads.
    has_epoch: Duration,
    leads: Duration,
}

impl RegionTimes {
    /// The least time until it is proven.
    fn proven(&self) -> Duration {
        (self.has_epoch + self.wait).max(self.leads) + self.read
    }
}

impl Ledger {
    /// Notes what the machine hands out.
    pub(super) fn sent(&mut self, effect: &Effect, at: Timestamp) {
        if self.closed {
            return;
        }
        let mut call = |request: &RequestId, store, what| {
            self.calls.insert(*request, Sent { store, at, what });
        };
        match effect {
            Effect::OpenStream { stream, store } => {
                self.streams.insert(*stream, store.id);
            }
            Effect::UpdateLease {
                request, store_id, ..
            } => call(request, *store_id, Call::Lease),
            Effect::Finish {
                request, store_id, ..
            } => call(request, *store_id, Call::Finish),
            Effect::ListClaims { request, store } => call(request, store.id, Call::Listing),
            Effect::WaitApply {
                stream, regions, ..
            } => {
                let asked = regions.iter().map(|of| ((*stream, of.region_id), at));
                self.waits.extend(asked);
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                call(request, store.id, Call::Read);
                let asked = regions.iter().map(|of| ((*request, of.region_id), at));
                self.reads.extend(asked);
            }
            _ => {}
        }
    }

    /// Notes what happened.
    pub(super) fn answered(&mut self, event: &Event, now: Timestamp) {
        if self.closed {
            return;
        }
        match event {
            Event::LeaseUpdated { request, .. }
            | Event::RegionsClaimed {
                request,
                done: true,
                ..
            } => self.call_answered(*request, now),
            Event::WaitApplyDone { stream, answers } if !self.is_held => {
                for answer in answers {
                    let Some(target) = answer.target else {
                        continue;
                    };
                    let sent = self.waits.remove(&(*stream, target.region_id));
                    if let (Some(sent), Some(&store), Ok(())) =
                        (sent, self.streams.get(stream), &answer.result)
                    {
                        let times = RegionTimes {
                            store,
                            wait: now.saturating_duration_since(sent),
                            read: Duration::ZERO,
                            has_epoch: Duration::ZERO,
                            leads: Duration::ZERO,
                        };
                        self.regions.insert(target.region_id, times);
                    }
                }
            }
            Event::LeaderReadDone { request, answers } if !self.is_held => {
                for answer in answers {
                    let sent = self.reads.remove(&(*request, answer.region_id));
                    if let (Some(sent), Some(times), Ok(())) = (
                        sent,
                        self.regions.get_mut(&answer.region_id),
                        &answer.result,
                    ) {
                        times.read = now.saturating_duration_since(sent);
                    }
                }
            }
            Event::FinishRequested => self.finish_asked = Some(now),
            _ => {}
        }
    }

    fn call_answered(&mut self, request: RequestId, now: Timestamp) {
        let Some(Sent { store, at, what }) = self.calls.remove(&request) else {
            return;
        };
        let took = now.saturating_duration_since(at);
        let times = self.stores.entry(store).or_default();
        match what {
            Call::Lease if times.lease.is_none() => times.lease = Some(took),
            Call::Lease if !self.is_held => times.renewal = took,
            Call::Listing if !self.is_held => times.listing = took,
            Call::Finish => times.finish = took,
            Call::Lease | Call::Listing | Call::Read => {}
        }
    }

    /// Notes what the machine tells.
    pub(super) fn told(&mut self, notice: &Notice, now: Timestamp) {
        match notice {
            Notice::PhaseEntered { phase, .. } => {
                self.phases.entry(*phase).or_insert(now);
            }
            Notice::AttemptFailed { .. } | Notice::HoldLost(_) => {
                *self = Self {
                    closed: true,
                    ..Self::default()
                };
            }
            _ => {}
        }
    }

    /// Notes that the hold begins. What the cluster is then tells since when each
    /// region could have been proven.
    pub(super) fn held(&mut self, cluster: &Cluster) {
        self.is_held = true;
        let Some(&begin) = self.phases.get(&PhaseName::WaitApply) else {
            return;
        };
        for (&region, times) in &mut self.regions {
            let formed = cluster.formed(region, times.store);
            times.has_epoch = formed.epoch_at.saturating_duration_since(begin);
            times.leads = formed.leads_at.saturating_duration_since(begin);
        }
    }

    /// Returns the standstill of a run that is over; `None` for one that has no
    /// floor.
    pub(super) fn standstill(&self, machine: &Machine, window: u32) -> Option<Standstill> {
        let prepared = machine.prepare_report()?;
        let suspended = machine.finish_report()?.suspended_time?;
        let finish_asked = self.finish_asked.filter(|_| !self.closed)?;
        let end = prepared.suspended_at + suspended;
        let begin = |phase| self.phases.get(&phase).copied();
        let marks = [
            (prepared.suspended_at, begin(PhaseName::WaitApply)?),
            (begin(PhaseName::WaitApply)?, begin(PhaseName::Verify)?),
            (begin(PhaseName::Verify)?, prepared.held_at),
            (finish_asked, end),
        ];
        let mut parts = [Share::default(); 4];
        let floors = self.floors(window);
        for ((share, (from, to)), floor) in parts.iter_mut().zip(marks).zip(floors) {
            share.took = to.saturating_duration_since(from);
            share.floor = floor;
        }
        Some(Standstill {
            took: parts.iter().map(|share| share.took).sum(),
            floor: floors.iter().sum(),
            parts,
        })
    }

    /// Returns the floors of the parts.
    fn floors(&self, window: u32) -> [Duration; 4] {
        let asking = self.asking(window);
        let slowest = |of: &dyn Fn(&StoreTimes) -> Duration| {
            self.stores.values().map(of).max().unwrap_or_default()
        };
        let ask = asking.values().copied().max().unwrap_or_default();
        let ask_and_list = self
            .stores
            .iter()
            .map(|(store, times)| asking.get(store).copied().unwrap_or_default() + times.listing)
            .max()
            .unwrap_or_default();
        let both = ask_and_list.max(ask + slowest(&|times| times.renewal));
        [
            slowest(&|times| times.lease.unwrap_or_default()),
            ask,
            both.saturating_sub(ask),
            slowest(&|times| times.finish),
        ]
    }

    /// Returns the least time in which each store's regions can be proven.
    fn asking(&self, window: u32) -> BTreeMap<StoreId, Duration> {
        let mut sums: BTreeMap<StoreId, (Duration, Duration, Duration)> = BTreeMap::new();
        for times in self.regions.values() {
            let (slowest, waits, reads) = sums.entry(times.store).or_default();
            *slowest = (*slowest).max(times.proven());
            *waits += times.wait;
            *reads += times.read;
        }
        let window = window.max(1);
        sums.into_iter()
            .map(|(store, (slowest, waits, reads))| {
                (store, slowest.max(waits / window).max(reads / window))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{PeerId, ReadAnswer, ReadTarget};
    use crate::region::{RegionEpoch, RegionError, RegionErrorKind, Store, WaitAnswer, WaitTarget};
    use crate::sim::fault::FaultLevel;
    use crate::sim::world::{Sizes, run_seed};

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn millis(floors: [Duration; 4]) -> [u128; 4] {
        floors.map(|floor| floor.as_millis())
    }

    fn call(ledger: &mut Ledger, number: u64, what: Call, store: u64, from: u64, to: u64) {
        let (request, store_id) = (RequestId(number), StoreId(store));
        let stream = RequestId(store);
        let effect = match what {
            Call::Lease => Effect::UpdateLease {
                request,
                stream,
                store_id,
                seconds: 60,
            },
            Call::Finish => Effect::Finish {
                request,
                stream,
                store_id,
            },
            Call::Listing | Call::Read => Effect::ListClaims {
                request,
                store: store_of(store),
            },
        };
        ledger.sent(&effect, at(from));
        let event = match what {
            Call::Listing | Call::Read => Event::RegionsClaimed {
                request,
                claims: Vec::new(),
                done: true,
            },
            Call::Lease | Call::Finish => Event::LeaseUpdated {
                request,
                last_lease_is_valid: true,
            },
        };
        ledger.answered(&event, at(to));
    }

    fn store_of(store: u64) -> Store {
        Store {
            id: StoreId(store),
            ..Store::default()
        }
    }

    /// A wait from `from` to `to`, then, if it is served, a read of 10 ms.
    fn prove(ledger: &mut Ledger, store: u64, region: u64, from: u64, to: u64, served: bool) {
        let (stream, region_id) = (RequestId(store), RegionId(region));
        let epoch = RegionEpoch::default();
        let target = WaitTarget { region_id, epoch };
        let wait = Effect::WaitApply {
            stream,
            store_id: StoreId(store),
            regions: vec![target],
        };
        ledger.sent(&wait, at(from));
        let refused = RegionError::new(RegionErrorKind::NotLeader, "");
        let answers = vec![WaitAnswer {
            target: Some(target),
            result: if served { Ok(()) } else { Err(refused) },
        }];
        ledger.answered(&Event::WaitApplyDone { stream, answers }, at(to));
        if !served {
            return;
        }
        let request = RequestId(1_000 + to);
        let read = ReadTarget {
            region_id,
            epoch,
            peer_id: PeerId(1),
        };
        let read = Effect::LeaderRead {
            request,
            store: store_of(store),
            regions: vec![read],
        };
        ledger.sent(&read, at(to));
        let answers = vec![ReadAnswer {
            region_id,
            epoch,
            result: Ok(()),
        }];
        ledger.answered(&Event::LeaderReadDone { request, answers }, at(to + 10));
    }

    fn two_stores() -> Ledger {
        let mut ledger = Ledger::default();
        for store in [1, 2] {
            let stream = RequestId(store);
            let store = store_of(store);
            ledger.sent(&Effect::OpenStream { stream, store }, at(0));
        }
        call(&mut ledger, 11, Call::Lease, 1, 0, 5);
        call(&mut ledger, 12, Call::Lease, 2, 0, 9);
        ledger
    }

    #[test]
    fn the_slowest_of_each_kind_adds_up() {
        let mut ledger = two_stores();
        prove(&mut ledger, 1, 100, 10, 30, true);
        prove(&mut ledger, 2, 200, 10, 15, true);
        // The slow region's store lists fast, the other one slowly.
        call(&mut ledger, 21, Call::Listing, 1, 50, 52);
        call(&mut ledger, 22, Call::Listing, 2, 50, 57);
        call(&mut ledger, 31, Call::Lease, 1, 50, 54);
        call(&mut ledger, 41, Call::Finish, 1, 90, 91);
        call(&mut ledger, 42, Call::Finish, 2, 90, 93);
        // 9 ms for the leases; 20 + 10 for region 100; then its store's listing
        // of 2 ms or the renewal of 4 ms; 3 ms to release.
        assert_eq!(millis(ledger.floors(512)), [9, 30, 4, 3]);
        // Store 2 could have begun its listing 15 ms earlier.
        call(&mut ledger, 23, Call::Listing, 2, 60, 82);
        assert_eq!(millis(ledger.floors(512)), [9, 30, 7, 3]);
    }

    #[test]
    fn failures_and_what_is_done_twice_count_once() {
        let mut ledger = two_stores();
        prove(&mut ledger, 1, 100, 10, 500, false);
        prove(&mut ledger, 1, 100, 600, 700, true);
        prove(&mut ledger, 1, 100, 800, 820, true);
        assert_eq!(millis(ledger.floors(512))[1], 30);
    }

    #[test]
    fn a_full_window_is_a_floor_of_its_own() {
        let mut ledger = two_stores();
        for region in 0..10 {
            prove(&mut ledger, 1, 100 + region, 10, 30, true);
        }
        assert_eq!(millis(ledger.floors(10))[1], 30);
        // Two at a time: five times 20 ms.
        assert_eq!(millis(ledger.floors(2))[1], 100);
    }

    #[test]
    fn doubt_leaves_no_floor() {
        let mut ledger = two_stores();
        let cause = crate::error::Error::new(crate::error::ErrorKind::LeaseLost, "");
        let notice = Notice::AttemptFailed { attempt: 1, cause };
        ledger.told(&notice, at(20));
        prove(&mut ledger, 1, 100, 30, 40, true);
        assert!(ledger.closed && ledger.regions.is_empty());
    }

    #[test]
    fn no_run_is_below_its_floor() {
        for level in [FaultLevel::None, FaultLevel::Light, FaultLevel::Heavy] {
            let mut with_floor = 0;
            for seed in 0..60 {
                let report = run_seed(seed, level, &Sizes::default());
                let Some(standstill) = &report.standstill else {
                    continue;
                };
                with_floor += 1;
                assert!(standstill.floor > Duration::ZERO, "{}", report.replay());
                assert!(
                    standstill.took >= standstill.floor,
                    "{standstill}: {}",
                    report.replay()
                );
                let sums = standstill
                    .parts
                    .iter()
                    .fold(Share::default(), |sum, share| Share {
                        took: sum.took + share.took,
                        floor: sum.floor + share.floor,
                    });
                assert_eq!((sums.took, sums.floor), (standstill.took, standstill.floor));
            }
            assert!(with_floor >= 10, "{level}: {with_floor}");
        }
    }

    #[test]
    fn ratios_have_no_holes() {
        let ms = Duration::from_millis;
        assert_eq!(ratio(ms(15), ms(10)), 1_500);
        assert_eq!(ratio(Duration::ZERO, Duration::ZERO), 1_000);
        assert_eq!(ratio(ms(1), Duration::ZERO), u64::MAX);
    }
}
