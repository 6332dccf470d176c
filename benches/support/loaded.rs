//! A cluster at work whose stores have a cost, in virtual time: what a machine's
//! window does to them and to the standstill.
//!
//! Each store is as a real one was measured. The thread that serves a prepare
//! stream takes 30 us for an answer, and each time it wakes it goes through the
//! regions that still wait, 40 ns each, until it finds one that is ready: so its
//! cost grows with the square of what is in flight. Four threads serve reads,
//! 300 us each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use snapshot_prepare::machine::{Config, Effect, Event, Machine, RequestId};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{ReadAnswer, StoreId, WaitAnswer, WaitTarget};
use snapshot_prepare::time::Timestamp;

use super::feed::Cluster;

/// One way between the client and a store.
const DELAY: Duration = Duration::from_micros(300);
const ANSWER: Duration = Duration::from_micros(30);
const LOOK: Duration = Duration::from_nanos(40);
const READ: Duration = Duration::from_micros(300);
const READERS: usize = 4;
/// How long a store takes to apply a region when it applies one after the other.
const APPLY: Duration = Duration::from_millis(1);
/// Claims in one part of a listing.
const PART: usize = 1024;

/// When a region that is asked for has applied what was in its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Apply {
    /// 0.2 ms to 50 ms later, spread evenly over the magnitudes.
    Soon,
    /// The store is behind: its regions are ready one after the other, one in a
    /// millisecond.
    InTurn,
}

/// What a window costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// From the first wait sent until everything was proven.
    pub(crate) proving: Duration,
    /// Time of a store's stream thread for each region.
    pub(crate) stream_thread: Duration,
}

/// Prepares with a window. Panics if that does not come to a hold.
pub(crate) fn cost(cluster: Cluster, apply: Apply, window: u32) -> Cost {
    let config = Config {
        window,
        prepare_timeout: Duration::from_secs(24 * 3600),
        ..Config::default()
    };
    let start = Timestamp::from_micros(1_000_000);
    let mut loaded = Loaded {
        cluster,
        apply,
        now: start,
        machine: Machine::new(config, start).expect("a sound configuration"),
        rng: ChaCha8Rng::seed_from_u64(1),
        queue: BinaryHeap::new(),
        payloads: Vec::new(),
        stores: (0..cluster.stores).map(|_| Store::default()).collect(),
    };
    let mut proving = None;
    loop {
        loaded.carry_out_all();
        match loaded.machine.phase() {
            PhaseName::WaitApply => drop(proving.get_or_insert(loaded.now)),
            PhaseName::Verify => break,
            _ => assert!(loaded.machine.outcome().is_none()),
        }
        loaded.advance();
    }
    let busy: Duration = loaded.stores.iter().map(|store| store.busy).sum();
    Cost {
        proving: loaded
            .now
            .saturating_duration_since(proving.expect("it was entered")),
        stream_thread: busy.div_f64(cluster.regions as f64),
    }
}

#[derive(Default)]
struct Store {
    stream: Option<RequestId>,
    /// Regions that are asked for and not answered.
    waiting: u32,
    ready: VecDeque<WaitTarget>,
    is_awake: bool,
    /// When the last region that was asked for is ready, when it goes in turn.
    applied: Timestamp,
    /// When each reader is free.
    readers: [Timestamp; READERS],
    /// What the stream's thread has worked.
    busy: Duration,
}

/// What happens at its time.
enum Due {
    /// Something reaches the client.
    Arrive(Event),
    /// A region has applied what was in its log.
    Ready(usize, WaitTarget),
    /// The stream's thread is done with an answer.
    Answered(usize, WaitTarget),
}

struct Loaded {
    cluster: Cluster,
    apply: Apply,
    now: Timestamp,
    machine: Machine,
    rng: ChaCha8Rng,
    /// The order of what is due, by time and then by number.
    queue: BinaryHeap<Reverse<(Timestamp, usize)>>,
    payloads: Vec<Option<Due>>,
    stores: Vec<Store>,
}

impl Loaded {
    fn after(&mut self, delay: Duration, due: Due) {
        self.queue
            .push(Reverse((self.now + delay, self.payloads.len())));
        self.payloads.push(Some(due));
    }

    /// Moves on to the next thing that happens.
    fn advance(&mut self) {
        let due = self.queue.peek().map(|Reverse((at, _))| *at);
        let timeout = self.machine.poll_timeout();
        if timeout.is_some_and(|at| due.is_none_or(|due| at <= due)) {
            self.now = self.now.max(timeout.expect("it is there"));
            self.machine.handle_timeout(self.now);
            return;
        }
        let Reverse((at, number)) = self.queue.pop().expect("something goes on");
        self.now = self.now.max(at);
        match self.payloads[number].take().expect("it is due once") {
            Due::Arrive(event) => self.machine.handle_event(event, self.now),
            Due::Ready(store, target) => {
                self.stores[store].ready.push_back(target);
                self.wake(store);
            }
            Due::Answered(store, target) => {
                let of_store = &mut self.stores[store];
                of_store.waiting -= 1;
                of_store.is_awake = false;
                if let Some(stream) = of_store.stream {
                    let answers = vec![WaitAnswer {
                        target: Some(target),
                        result: Ok(()),
                    }];
                    let done = Event::WaitApplyDone { stream, answers };
                    self.after(DELAY, Due::Arrive(done));
                }
                self.wake(store);
            }
        }
    }

    /// Lets a stream's thread look for a region that is ready.
    fn wake(&mut self, store: usize) {
        let of_store = &mut self.stores[store];
        if of_store.is_awake {
            return;
        }
        let ready = u32::try_from(of_store.ready.len()).unwrap_or(u32::MAX);
        if let Some(target) = of_store.ready.pop_front() {
            of_store.is_awake = true;
            let work = ANSWER + LOOK * of_store.waiting / ready;
            of_store.busy += work;
            self.after(work, Due::Answered(store, target));
        }
    }

    fn carry_out_all(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            self.carry_out(effect);
        }
        while self.machine.poll_notice().is_some() {}
    }

    fn carry_out(&mut self, effect: Effect) {
        let answer = match effect {
            Effect::ListStores { request } => Event::StoresListed {
                request,
                stores: self.cluster.stores(),
            },
            Effect::OpenStream { stream, store } => {
                self.stores[at(store.id)].stream = Some(stream);
                Event::StreamOpened { stream }
            }
            Effect::UpdateLease { request, .. } => Event::LeaseUpdated {
                request,
                last_lease_is_valid: self.machine.phase() != PhaseName::Suspend,
            },
            Effect::ListClaims { request, store } => return self.list(request, store.id),
            Effect::WaitApply {
                store_id, regions, ..
            } => return self.wait(at(store_id), &regions),
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                for target in regions {
                    let answers = vec![ReadAnswer {
                        region_id: target.region_id,
                        epoch: target.epoch,
                        result: Ok(()),
                    }];
                    let served = self.read(at(store.id));
                    let done = Event::LeaderReadDone { request, answers };
                    self.after(served, Due::Arrive(done));
                }
                return;
            }
            other => panic!("a healthy cluster needs no {}", other.name()),
        };
        self.after(DELAY * 2, Due::Arrive(answer));
    }

    fn list(&mut self, request: RequestId, store: StoreId) {
        let claims = self.cluster.claims(store);
        let mut delay = DELAY * 2;
        for part in claims.chunks(PART) {
            delay += ANSWER * PART as u32;
            let claimed = Event::RegionsClaimed {
                request,
                claims: part.to_vec(),
                done: false,
            };
            self.after(delay, Due::Arrive(claimed));
        }
        let done = Event::RegionsClaimed {
            request,
            claims: Vec::new(),
            done: true,
        };
        self.after(delay, Due::Arrive(done));
    }

    fn wait(&mut self, store: usize, regions: &[WaitTarget]) {
        for target in regions {
            self.stores[store].waiting += 1;
            let applied = match self.apply {
                Apply::Soon => {
                    let magnitude = self.rng.random_range(0.2_f64.ln()..50_f64.ln());
                    Duration::from_secs_f64(magnitude.exp() / 1_000.0)
                }
                Apply::InTurn => {
                    let of_store = &mut self.stores[store];
                    of_store.applied = of_store.applied.max(self.now) + APPLY;
                    of_store.applied.saturating_duration_since(self.now)
                }
            };
            self.after(DELAY + applied, Due::Ready(store, *target));
        }
    }

    /// Returns after how long a read that is sent now is answered.
    fn read(&mut self, store: usize) -> Duration {
        let asked = self.now + DELAY;
        let readers = &mut self.stores[store].readers;
        let first = readers.iter_mut().min().expect("there are some");
        *first = asked.max(*first) + READ;
        first.saturating_duration_since(self.now) + DELAY
    }
}

/// Returns the place of a store in the list.
fn at(store: StoreId) -> usize {
    usize::try_from(store.0 - 1).expect("stores are few")
}
