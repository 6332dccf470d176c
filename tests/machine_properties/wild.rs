//! Totality: any event, with any number, in any phase, at any time.

use proptest::prelude::*;
use snapshot_prepare::error::Failure;
use snapshot_prepare::fuzz::play::{Input, Run, follow_wild};
use snapshot_prepare::machine::{Event, RequestId};
use snapshot_prepare::range::{EndKey, Key, KeyRange};
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionError, RegionId,
    ScannedRegion, Store, StoreId, StoreState, WaitAnswer, WaitTarget,
};

use super::plan::{failure_kind, plan, region_error, step};
use super::runner::check;

const REGRESSIONS: &str = "tests/machine_properties/regressions/wild.txt";

/// Small numbers are met often, large ones at the edge.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..6_u64, 6 => 0..40_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn key() -> impl Strategy<Value = Key> {
    prop::collection::vec(
        prop_oneof![Just(0_u8), Just(64), Just(128), Just(192), Just(255)],
        0..3,
    )
    .prop_map(Key::new)
}

fn key_range() -> impl Strategy<Value = KeyRange> {
    let end = prop_oneof![2 => key().prop_map(EndKey::Bounded), 1 => Just(EndKey::Unbounded)];
    (key(), end).prop_map(|(start, end)| KeyRange::new(start, end).unwrap_or(KeyRange::whole()))
}

fn store() -> impl Strategy<Value = Store> {
    let state = prop_oneof![
        4 => Just(StoreState::Up),
        1 => Just(StoreState::Offline),
        1 => Just(StoreState::Tombstone),
    ];
    (0..6_u64, state, prop::bool::weighted(0.1)).prop_map(|(id, state, tiflash)| {
        let labels = tiflash.then(|| ("engine".to_owned(), "tiflash".to_owned()));
        Store {
            id: StoreId(id),
            address: format!("elsewhere-{id}"),
            state,
            labels: labels.into_iter().collect(),
            ..Store::default()
        }
    })
}

fn epoch() -> impl Strategy<Value = RegionEpoch> {
    (number(), number()).prop_map(|(conf_ver, version)| RegionEpoch { conf_ver, version })
}

fn region() -> impl Strategy<Value = Region> {
    let role = prop_oneof![
        4 => Just(PeerRole::Voter),
        1 => Just(PeerRole::Learner),
        1 => Just(PeerRole::IncomingVoter),
    ];
    let peer = (number(), 0..5_u64, role).prop_map(|(id, store, role)| Peer {
        id: PeerId(id),
        store_id: StoreId(store),
        role,
    });
    (
        number(),
        key_range(),
        epoch(),
        prop::collection::vec(peer, 0..4),
    )
        .prop_map(|(id, range, epoch, peers)| Region {
            id: RegionId(id),
            range,
            epoch,
            peers,
        })
}

fn result() -> impl Strategy<Value = Result<(), RegionError>> {
    prop_oneof![
        3 => Just(Ok(())),
        1 => region_error().prop_map(|kind| Err(RegionError::new(kind, "no"))),
    ]
}

fn request() -> impl Strategy<Value = RequestId> {
    number().prop_map(RequestId)
}

fn failed() -> impl Strategy<Value = Failure> {
    failure_kind().prop_map(|kind| Failure::new(kind, "wild"))
}

fn answers() -> impl Strategy<Value = Event> {
    let target = (number(), epoch()).prop_map(|(id, epoch)| WaitTarget {
        region_id: RegionId(id),
        epoch,
    });
    let wait = (prop::option::weighted(0.9, target), result())
        .prop_map(|(target, result)| WaitAnswer { target, result });
    let read = (number(), epoch(), result()).prop_map(|(id, epoch, result)| ReadAnswer {
        region_id: RegionId(id),
        epoch,
        result,
    });
    prop_oneof![
        (request(), prop::collection::vec(wait, 0..5))
            .prop_map(|(stream, answers)| Event::WaitApplyDone { stream, answers }),
        (request(), prop::collection::vec(read, 0..5))
            .prop_map(|(request, answers)| Event::LeaderReadDone { request, answers }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let claim = (region(), any::<bool>()).prop_map(|(region, has_pending_admin)| Claim {
        region,
        has_pending_admin,
    });
    let scanned = (region(), prop::option::of((0..6_u64).prop_map(StoreId)))
        .prop_map(|(region, leader)| ScannedRegion { region, leader });
    prop_oneof![
        2 => (request(), prop::collection::vec(store(), 0..5))
            .prop_map(|(request, stores)| Event::StoresListed { request, stores }),
        2 => request().prop_map(|stream| Event::StreamOpened { stream }),
        1 => (request(), failed())
            .prop_map(|(stream, reason)| Event::StreamEnded { stream, reason }),
        3 => (request(), any::<bool>()).prop_map(|(request, last_lease_is_valid)| {
            Event::LeaseUpdated { request, last_lease_is_valid }
        }),
        4 => (request(), prop::collection::vec(claim, 0..5), any::<bool>())
            .prop_map(|(request, claims, done)| Event::RegionsClaimed { request, claims, done }),
        6 => answers(),
        3 => (request(), prop::collection::vec(scanned, 0..5))
            .prop_map(|(request, regions)| Event::RegionsScanned { request, regions }),
        2 => (request(), failed())
            .prop_map(|(request, failure)| Event::RequestFailed { request, failure }),
        1 => Just(Event::FinishRequested),
        1 => prop_oneof![Just(Event::CancelRequested), Just(Event::LockLost)],
    ]
}

fn input() -> impl Strategy<Value = Input> {
    let millis = prop_oneof![
        6 => Just(0_i64),
        3 => 0..400_i64,
        2 => -5_000..30_000_i64,
        1 => 0..4_000_000_i64,
    ];
    prop_oneof![
        1 => step().prop_map(Input::Move),
        1 => (event(), prop::option::weighted(0.7, any::<u8>()), millis)
            .prop_map(|(event, aim, millis)| Input::Event { event, aim, millis }),
    ]
}

/// Nothing makes the machine panic, spin, flood, or break an invariant.
#[test]
fn any_event_is_accepted_in_any_phase() {
    let strategy = (plan(), prop::collection::vec(input(), 0..60));
    check(
        "any_event_is_accepted_in_any_phase",
        REGRESSIONS,
        512,
        &strategy,
        |(plan, inputs)| {
            let mut run = Run::new(plan.config.clone(), plan.world())?;
            follow_wild(inputs, &mut run)
        },
    );
}
