//! Plans: what the cluster is like and what happens, drawn at random.

use std::time::Duration;

use proptest::prelude::*;
use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Config, ForeignLease, Proof};
use snapshot_prepare::region::RegionErrorKind;

use snapshot_prepare::fuzz::play::{Change, How, Move, Plan, REGION_ERRORS, range};

pub(crate) fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![6 => Just(120), 1 => Just(5), 1 => Just(12)],
        prop_oneof![3 => Just(300), 1 => Just(20)],
        prop_oneof![2 => Just(3600), 1 => Just(10)],
        prop_oneof![Just(1), Just(2), Just(512)],
        prop_oneof![Just(1), Just(2), Just(4096)],
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
        0..1000_u64,
    )
        .prop_map(
            |(lease, prepare, hold, window, page_size, refuse, claims, part, seed)| Config {
                target: if part {
                    range(64, 192)
                } else {
                    Config::default().target
                },
                lease: Duration::from_secs(lease),
                prepare_timeout: Duration::from_secs(prepare),
                hold_timeout: Duration::from_secs(hold),
                window,
                page_size,
                foreign_lease: if refuse {
                    ForeignLease::Refuse
                } else {
                    ForeignLease::Proceed
                },
                proof: if claims { Proof::Claims } else { Proof::Read },
                seed,
                ..Config::default()
            },
        )
}

pub(crate) fn region_error() -> impl Strategy<Value = RegionErrorKind> {
    prop::sample::select(REGION_ERRORS.to_vec())
}

/// Failures of the network far more often than those that end the run.
pub(crate) fn failure_kind() -> impl Strategy<Value = FailureKind> {
    prop_oneof![
        4 => prop::sample::select(vec![
            FailureKind::Unavailable,
            FailureKind::Transport,
            FailureKind::Timeout,
            FailureKind::Cancelled,
        ]),
        1 => prop::sample::select(FailureKind::ALL.to_vec()),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        10 => Just(How::Well),
        4 => region_error().prop_map(How::Refuse),
        2 => failure_kind().prop_map(How::Fail),
        2 => Just(How::Partly),
        2 => Just(How::Yes),
        1 => Just(How::WrongEpoch),
        1 => Just(How::Nameless),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => any::<u8>().prop_map(Change::Split),
        2 => any::<u8>().prop_map(Change::Merge),
        2 => any::<u8>().prop_map(Change::ConfVer),
        3 => any::<(u8, u8)>().prop_map(|(which, to)| Change::Lead(which, to)),
        2 => any::<(u8, u8)>().prop_map(|(which, by)| Change::AlsoClaim(which, by)),
        2 => any::<u8>().prop_map(Change::Pending),
        2 => any::<u8>().prop_map(Change::Hidden),
        1 => Just(Change::Leaderless),
        1 => Just(Change::AddStore),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Move> {
    prop_oneof![
        24 => Just(Move::AnswerAll),
        6 => Just(Move::AnswerAllButLeases),
        20 => (any::<u8>(), how()).prop_map(|(which, how)| Move::Answer(which, how)),
        4 => (any::<u8>(), how()).prop_map(|(which, how)| Move::Again(which, how)),
        2 => any::<u8>().prop_map(Move::Drop),
        1 => (any::<u8>(), failure_kind()).prop_map(|(which, kind)| Move::EndStream(which, kind)),
        6 => change().prop_map(Move::Change),
        6 => prop_oneof![4 => 1..300_u32, 2 => 300..9_000_u32, 1 => 9_000..200_000_u32]
            .prop_map(Move::Pass),
        2 => prop_oneof![4 => 1..3_000_u32, 1 => 3_000..200_000_u32].prop_map(Move::PassSilently),
        12 => Just(Move::NextDeadline),
        1 => Just(Move::Finish),
        1 => prop_oneof![2 => Just(Move::Cancel), 1 => Just(Move::LockLost)],
    ]
}

/// What can happen in `Hold` and after it.
fn step_in_hold() -> impl Strategy<Value = Move> {
    prop_oneof![
        2 => Just(Move::Finish),
        3 => Just(Move::AnswerAll),
        3 => (any::<u8>(), how()).prop_map(|(which, how)| Move::Answer(which, how)),
        1 => (any::<u8>(), how()).prop_map(|(which, how)| Move::Again(which, how)),
        1 => any::<u8>().prop_map(Move::Drop),
        1 => (any::<u8>(), failure_kind()).prop_map(|(which, kind)| Move::EndStream(which, kind)),
        1 => any::<u8>().prop_map(|which| Move::EndStream(which, FailureKind::Superseded)),
        1 => prop_oneof![Just(Move::Cancel), Just(Move::LockLost)],
        2 => Just(Move::NextDeadline),
        1 => (1..40_000_u32).prop_map(Move::Pass),
        1 => (1..40_000_u32).prop_map(Move::PassSilently),
    ]
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    (
        1..=3_u64,
        1..=4_u16,
        prop::bool::weighted(0.2),
        config(),
        prop::collection::vec(step(), 0..60),
        prop::collection::vec(step_in_hold(), 0..10),
    )
        .prop_map(|(stores, regions, foreign, config, moves, in_hold)| Plan {
            stores,
            regions,
            foreign,
            config,
            moves,
            in_hold,
        })
}
