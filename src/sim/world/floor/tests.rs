use std::time::Duration;

use super::{Ledger, Share, ratio};
use crate::machine::{Effect, Event, Notice, RequestId};
use crate::progress::PhaseName;
use crate::region::{
    PeerId, ReadAnswer, ReadTarget, RegionEpoch, RegionError, RegionErrorKind, RegionId, Store,
    StoreId, WaitAnswer, WaitTarget,
};
use crate::sim::fault::{FaultLevel, FaultPlan};
use crate::sim::layout::Layout;
use crate::sim::model::Cluster;
use crate::sim::world::{Sizes, run_seed};
use crate::time::Timestamp;

/// What is sent to a store and answered.
#[derive(Clone, Copy)]
enum Call {
    Lease,
    Listing,
    Finish,
}

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
        Call::Listing => Effect::ListClaims {
            request,
            store: store_of(store),
        },
    };
    ledger.sent(&effect, at(from));
    let event = match what {
        Call::Listing => Event::RegionsClaimed {
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
    let refused = RegionErrorKind::NotLeader;
    wait(
        ledger,
        store,
        region,
        from,
        to,
        (!served).then_some(refused),
    );
    if served {
        read(ledger, store, region, to);
    }
}

/// A wait from `from` to `to`, refused if an error is given.
fn wait(
    ledger: &mut Ledger,
    store: u64,
    region: u64,
    from: u64,
    to: u64,
    error: Option<RegionErrorKind>,
) {
    let (stream, region_id) = (RequestId(store), RegionId(region));
    let epoch = RegionEpoch::default();
    let target = WaitTarget { region_id, epoch };
    let wait = Effect::WaitApply {
        stream,
        store_id: StoreId(store),
        regions: vec![target],
    };
    ledger.sent(&wait, at(from));
    let answers = vec![WaitAnswer {
        target: Some(target),
        result: error.map_or(Ok(()), |kind| Err(RegionError::new(kind, ""))),
    }];
    ledger.answered(&Event::WaitApplyDone { stream, answers }, at(to));
}

fn read(ledger: &mut Ledger, store: u64, region: u64, to: u64) {
    let region_id = RegionId(region);
    let epoch = RegionEpoch::default();
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

/// A store says when it wants to be asked again; asking later than that is the
/// client's doing.
#[test]
fn the_delay_that_a_busy_store_wants_is_part_of_the_floor() {
    let busy = |millis| RegionErrorKind::ServerIsBusy {
        backoff: Duration::from_millis(millis),
    };
    let mut ledger = two_stores();
    let notice = |phase| Notice::PhaseEntered { phase, attempt: 1 };
    ledger.told(&notice(PhaseName::WaitApply), at(10));
    wait(&mut ledger, 1, 100, 10, 12, Some(busy(200)));
    prove(&mut ledger, 1, 100, 500, 505, true);
    ledger.held(&cluster());
    // Until 212, which is 202 after the begin; then 5 + 10.
    assert_eq!(millis(ledger.floors(512))[1], 217);
}

fn cluster() -> Cluster {
    let layout = Layout::generate(1, 1, 1, 0);
    Cluster::new(&layout, FaultPlan::none(), 0, at(0))
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
