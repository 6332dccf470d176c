//! R5: who else prepares this cluster.

use snapshot_prepare::error::{ErrorKind, FailureKind};
use snapshot_prepare::machine::{ForeignLease, Notice, Outcome};
use snapshot_prepare::progress::{PhaseName, ReleaseState};
use snapshot_prepare::region::{RegionErrorKind, StoreId};

use crate::bench::*;
use crate::cluster::*;

/// Ends the stream of store 2 as a rival's would.
fn supersede(bench: &mut Bench) {
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    bench.tell(open.failed(failure(FailureKind::Superseded)));
}

#[test]
fn r05_superseded_while_dialing_is_final() {
    let mut bench = Bench::new();
    bench.when(|ask| ask.is_open() && ask.at(3), || Act::After(secs(5)));
    bench.run_to_ask("store 2 is dialed", |ask| ask.is_open() && ask.at(2));
    bench.run_for(secs(1));
    supersede(&mut bench);
    let error = failed(&bench.run_to_end(), ErrorKind::Superseded);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert_eq!(bench.count(Ask::is_lease), 0);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 1);
}

#[test]
fn r05_superseded_while_waiting_is_final_and_releases_the_others() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    supersede(&mut bench);
    let error = failed(&bench.run_to_end(), ErrorKind::Superseded);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert!(error.to_string().contains("store-2:20160"), "{error}");
    let finished: Vec<_> = bench
        .asked_since(0, Ask::is_finish)
        .filter_map(|(_, ask)| ask.store())
        .collect();
    assert_eq!(finished, [StoreId(1), StoreId(3)]);
    assert_eq!(bench.count(Ask::is_open), 3, "nobody is dialed again");
    assert!(matches!(
        bench.state_of(2),
        Some(ReleaseState::Unknown { .. })
    ));
}

#[test]
fn r05_superseded_in_the_hold_loses_it() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    supersede(&mut bench);
    let error = lost(&bench.run_to_end(), ErrorKind::Superseded);
    assert_eq!(error.store_id(), Some(StoreId(2)));
}

/// An attempt is given up, and store 2 says nothing to its Finish.
fn releasing() -> Bench {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    bench.when(|ask| ask.is_finish() && ask.at(2), || Act::Never);
    let lease = bench.last(|ask| ask.is_lease() && ask.at(1)).expect("sent");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench
}

#[test]
fn r05_superseded_while_an_attempt_is_released_is_final_too() {
    let mut bench = releasing();
    assert_eq!(bench.phase(), PhaseName::Release);
    supersede(&mut bench);
    failed(&bench.run_to_end(), ErrorKind::Superseded);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 1);
}

#[test]
fn r05_every_other_cancelled_is_doubt_and_the_store_is_dialed_again() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    bench.tell(open.failed(failure(FailureKind::Cancelled)));
    bench.well_again();
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 2);
}

#[test]
fn r05_a_late_superseded_of_a_closed_stream_says_nothing() {
    let mut bench = Bench::new();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_to(PhaseName::WaitApply);
    let old = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    let lease = bench.last(|ask| ask.is_lease() && ask.at(1)).expect("sent");
    bench.tell(lease.failed(failure(FailureKind::Transport)));
    bench.well_again();
    bench.run_to(PhaseName::WaitApply);
    assert_eq!(bench.attempt(), 2);
    let ignored = bench.ignored();
    bench.tell(old.failed(failure(FailureKind::Superseded)));
    assert_eq!(bench.ignored(), ignored + 1);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
}

fn foreign(bench: &Bench) -> Vec<StoreId> {
    bench
        .notices()
        .filter_map(|(_, notice)| match notice {
            Notice::ForeignLease { store_id } => Some(*store_id),
            _ => None,
        })
        .collect()
}

/// A cluster on whose store 2 somebody else's lease is running.
fn leased_by_another(answer: ForeignLease) -> Bench {
    let mut bench = Bench::with(3, 6, |config| config.foreign_lease = answer);
    let end = bench.now + secs(600);
    bench.cluster.leases.insert(StoreId(2), end);
    bench
}

#[test]
fn r05_a_foreign_lease_is_reported_and_the_run_proceeds() {
    let mut bench = leased_by_another(ForeignLease::Proceed);
    bench.run_to(PhaseName::Hold);
    assert_eq!(foreign(&bench), [StoreId(2)]);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.foreign_leases, [StoreId(2)]);
    assert_eq!(bench.finish(), Outcome::Finished);
    assert_eq!(bench.count(Ask::is_finish), 3);
}

#[test]
fn r05_no_foreign_lease_no_report() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    assert_eq!(foreign(&bench), []);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.foreign_leases, []);
}

#[test]
fn r05_refuse_gives_up_and_leaves_the_others_lease_alone() {
    let mut bench = leased_by_another(ForeignLease::Refuse);
    let error = failed(&bench.run_to_end(), ErrorKind::ForeignLease);
    assert!(error.to_string().contains("store 2"), "{error}");
    assert_eq!(foreign(&bench), [StoreId(2)]);
    assert_eq!(bench.count(Ask::is_wait), 0);
    assert_eq!(bench.count(|ask| ask.is_finish() && ask.at(2)), 0);
    assert!(matches!(
        bench.state_of(2),
        Some(ReleaseState::LeftToOther { .. })
    ));
    for id in [1, 3] {
        assert_eq!(bench.count(|ask| ask.is_finish() && ask.at(id)), 1);
    }
}

#[test]
fn r05_refuse_names_every_foreign_store_and_lifts_none() {
    let mut bench = leased_by_another(ForeignLease::Refuse);
    let end = bench.now + secs(600);
    bench.cluster.leases.insert(StoreId(3), end);
    let error = failed(&bench.run_to_end(), ErrorKind::ForeignLease);
    assert!(!bench.log.is_empty());
    for id in [2, 3] {
        assert_eq!(
            bench.count(|ask| ask.is_finish() && ask.at(id)),
            0,
            "store {id}: {error}"
        );
        assert!(matches!(
            bench.state_of(id),
            Some(ReleaseState::LeftToOther { .. })
        ));
    }
    assert_eq!(foreign(&bench), [StoreId(2), StoreId(3)]);
}

#[test]
fn r05_our_own_lease_of_an_earlier_attempt_is_not_foreign() {
    let mut bench = Bench::with(3, 6, |config| config.foreign_lease = ForeignLease::Refuse);
    bench.when(|ask| ask.is_finish() && ask.at(2), || Act::Never);
    bench.first(
        1,
        |ask| ask.is_wait() && ask.at(1),
        || Act::Fail(FailureKind::Transport),
    );
    bench.run_to(PhaseName::Release);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    assert_eq!(foreign(&bench), []);
}

#[test]
fn r05_a_foreign_lease_of_the_first_attempt_stays_refused_in_mind() {
    // With `Proceed` the report of the attempt that held still names it.
    let mut bench = leased_by_another(ForeignLease::Proceed);
    bench.first(
        1,
        |ask| ask.is_wait() && ask.at(1),
        || Act::Fail(FailureKind::Transport),
    );
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
    let report = bench.machine.prepare_report().expect("held");
    assert_eq!(report.foreign_leases, [StoreId(2)]);
}

/// The first lease of store 2 is answered only when its attempt is over, and
/// says that the store was not leased, or was so by an earlier attempt of ours.
#[test]
fn r05_what_shows_while_releasing_is_foreign_only_if_it_can_be() {
    for own_lease_left in [false, true] {
        let mut bench = Bench::new();
        let foreign = |bench: &Bench| {
            bench
                .notices()
                .filter(|(_, notice)| matches!(notice, Notice::ForeignLease { .. }))
                .count()
        };
        if own_lease_left {
            // The first attempt leases store 2 and cannot lift it again.
            bench.when(|ask| ask.is_finish() && ask.at(2), || Act::Never);
            bench.first(1, |ask| ask.is_lease() && ask.at(1), || Act::Never);
            bench.run_until("the next attempt", |bench| bench.attempt() == 2);
        }
        bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
        bench.run_to(PhaseName::Suspend);
        bench.run_for(secs(1));
        let open = bench.last(|ask| ask.is_open() && ask.at(1)).expect("open");
        bench.when(Ask::is_finish, || Act::Never);
        bench.tell(open.failed(failure(FailureKind::Unavailable)));
        assert_eq!(bench.phase(), PhaseName::Release);
        let last = bench.last(|ask| ask.is_lease() && ask.at(2));
        bench.release(|ask| Some(ask) == last.as_ref());
        assert_eq!(foreign(&bench), 0, "{own_lease_left}");
    }
}

/// Store 2 has said that it is leased by somebody else, and the attempt ends
/// before all stores have answered.
#[test]
fn r05_refuse_makes_no_other_attempt_once_a_foreign_lease_is_known() {
    let mut bench = leased_by_another(ForeignLease::Refuse);
    bench.when(|ask| ask.is_lease() && ask.at(3), || Act::Never);
    bench.run_to(PhaseName::Suspend);
    bench.run_for(secs(1));
    let open = bench.last(|ask| ask.is_open() && ask.at(3)).expect("open");
    bench.tell(open.failed(failure(FailureKind::Unavailable)));
    failed(&bench.run_to_end(), ErrorKind::ForeignLease);
    assert_eq!(bench.attempt(), 1);
    assert_eq!(bench.count(|ask| ask.is_lease() && ask.at(2)), 1);
    assert_eq!(bench.count(|ask| ask.is_finish() && ask.at(2)), 0);
}

/// Likewise, and the next attempt begins, with the end of the old stream still
/// unread.
fn given_up() -> (Bench, Ask) {
    let mut bench = releasing();
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    bench.run_to(PhaseName::Connect);
    bench.well_again();
    (bench, open)
}

#[test]
fn r05_superseded_is_final_even_when_the_stream_was_given_up() {
    let (mut bench, open) = given_up();
    bench.tell(open.failed(failure(FailureKind::Superseded)));
    let error = failed(&bench.run_to_end(), ErrorKind::Superseded);
    assert_eq!(error.store_id(), Some(StoreId(2)));
    assert!(error.to_string().contains("store-2:20160"), "{error}");
    assert_eq!(bench.count(|ask| ask.is_open() && ask.at(2)), 1);
}

#[test]
fn r05_any_other_end_of_a_stream_that_was_given_up_is_nothing() {
    let (mut bench, open) = given_up();
    let ignored = bench.ignored();
    bench.tell(open.failed(failure(FailureKind::Unavailable)));
    assert_eq!(bench.ignored(), ignored + 1);
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
}

/// The new stream is what ends the old one then.
#[test]
fn r05_an_old_stream_may_be_superseded_by_our_own_new_one() {
    let (mut bench, open) = given_up();
    bench.run_to_ask("a new stream", |ask| ask.is_open() && ask.at(2));
    bench.tell(open.failed(failure(FailureKind::Superseded)));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
}
