//! R6: an answer counts only if it answers a request in flight.

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::machine::{Event, RequestId};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::{ReadAnswer, RegionErrorKind, RegionId, WaitAnswer, WaitTarget};

use crate::bench::*;
use crate::cluster::*;

/// A run whose wait for region 101 is in flight and all else is proven.
fn waiting() -> (Bench, RequestId, WaitTarget) {
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.run_to(PhaseName::WaitApply);
    bench.run_for(ms(500));
    let Some(Ask::Wait { stream, target, .. }) = bench.withheld.first().cloned() else {
        panic!("a wait is withheld");
    };
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    (bench, stream, target)
}

fn answered(stream: RequestId, target: Option<WaitTarget>) -> Event {
    Event::WaitApplyDone {
        stream,
        answers: vec![WaitAnswer {
            target,
            result: Ok(()),
        }],
    }
}

/// Hands in an answer that must not count, and says whether it was asked again
/// soon.
fn does_not_count(mut bench: Bench, event: Event, asked_again: bool) {
    let mark = bench.mark();
    let (ignored, attempt) = (bench.ignored(), bench.attempt());
    bench.tell(event);
    assert_eq!(bench.count_since(mark, Ask::is_read), 0);
    if !asked_again {
        assert_eq!(bench.ignored(), ignored + 1, "counted as ignored");
    }
    bench.run_for(secs(6));
    let again = bench.count_since(mark, |ask| ask.is_wait() && ask.about(101));
    if asked_again {
        assert_eq!(again, 1, "a failed attempt, never silence");
        assert_eq!(bench.phase(), PhaseName::Hold);
    } else {
        assert_eq!(again, 0, "the wait in flight goes on");
        assert_eq!(bench.phase(), PhaseName::WaitApply);
        bench.release(|ask| ask.about(101));
        bench.run_to(PhaseName::Hold);
    }
    assert_eq!(bench.attempt(), attempt);
}

#[test]
fn r06_the_answer_in_flight_counts() {
    let (mut bench, stream, target) = waiting();
    let mark = bench.mark();
    bench.tell(answered(stream, Some(target)));
    assert_eq!(
        bench.count_since(mark, |ask| ask.is_read() && ask.about(101)),
        1
    );
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r06_another_version_is_a_failed_attempt() {
    let (bench, stream, mut target) = waiting();
    target.epoch.version += 1;
    does_not_count(bench, answered(stream, Some(target)), true);
}

#[test]
fn r06_an_older_version_is_a_failed_attempt() {
    let (bench, stream, mut target) = waiting();
    target.epoch.version -= 1;
    does_not_count(bench, answered(stream, Some(target)), true);
}

#[test]
fn r06_another_conf_ver_is_a_failed_attempt() {
    let (bench, stream, mut target) = waiting();
    target.epoch.conf_ver += 1;
    does_not_count(bench, answered(stream, Some(target)), true);
}

#[test]
fn r06_an_answer_without_a_region_is_a_failed_attempt() {
    let (bench, stream, _) = waiting();
    does_not_count(bench, answered(stream, None), true);
}

#[test]
fn r06_a_region_that_was_not_asked_for_is_ignored() {
    let (bench, stream, mut target) = waiting();
    target.region_id = RegionId(999);
    does_not_count(bench, answered(stream, Some(target)), false);
}

#[test]
fn r06_a_region_whose_answer_came_before_is_ignored() {
    let (bench, stream, mut target) = waiting();
    // Region 104 is led by the same store and is proven.
    target.region_id = RegionId(104);
    does_not_count(bench, answered(stream, Some(target)), false);
}

#[test]
fn r06_a_region_that_is_yet_to_be_asked_for_is_ignored() {
    let mut bench = Bench::with(3, 6, |config| config.window = 1);
    bench.when(|ask| ask.is_wait() && ask.at(1), || Act::Never);
    bench.run_to_ask("a wait", |ask| ask.is_wait() && ask.at(1));
    bench.run_for(ms(500));
    let Some(Ask::Wait { stream, target, .. }) = bench.withheld.first().cloned() else {
        panic!("a wait is withheld");
    };
    // Regions 101 and 104 are led by store 1; one of them fills the window.
    assert_eq!(target.region_id, RegionId(101));
    let next = WaitTarget {
        region_id: RegionId(104),
        ..target
    };
    let (mark, ignored) = (bench.mark(), bench.ignored());
    bench.tell(answered(stream, Some(next)));
    assert_eq!(bench.ignored(), ignored + 1);
    assert_eq!(bench.count_since(mark, Ask::is_read), 0);
    bench.well_again();
    bench.release(|ask| ask.about(101));
    bench.run_to(PhaseName::Hold);
    let waits = bench.count_since(mark, |ask| ask.is_wait() && ask.about(104));
    assert_eq!(waits, 1, "asked for all the same");
}

#[test]
fn r06_a_second_answer_while_the_region_is_read_is_ignored() {
    let (mut bench, read) = reading();
    let Some(Ask::Wait { stream, target, .. }) = bench.last(|ask| ask.is_wait() && ask.about(101))
    else {
        panic!("it was waited for");
    };
    let (mark, ignored) = (bench.mark(), bench.ignored());
    bench.tell(answered(stream, Some(target)));
    assert_eq!(bench.ignored(), ignored + 1);
    assert_eq!(bench.count_since(mark, Ask::is_read), 0);
    bench.tell(served(&read, |_, _| {}));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.count_since(mark, Ask::is_read), 0, "read once");
}

#[test]
fn r06_the_same_answer_from_another_store_is_ignored() {
    let (bench, _, target) = waiting();
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    let other = open.stream().expect("a stream");
    does_not_count(bench, answered(other, Some(target)), false);
}

#[test]
fn r06_the_same_answer_on_a_stream_that_never_was_is_ignored() {
    let (bench, _, target) = waiting();
    does_not_count(bench, answered(RequestId(987_654), Some(target)), false);
}

#[test]
fn r06_an_answer_of_the_attempt_before_is_ignored() {
    let (mut bench, stream, target) = waiting();
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    bench.tell(open.failed(failure(FailureKind::Transport)));
    bench.first(1, |ask| ask.is_wait() && ask.about(101), || Act::Never);
    bench.withheld.clear();
    bench.run_until("attempt 2 waits", |bench| {
        bench.attempt() == 2 && bench.withheld.len() == 1
    });
    does_not_count(bench, answered(stream, Some(target)), false);
}

/// A run whose read of region 101 is in flight and all else is proven.
fn reading() -> (Bench, Ask) {
    let mut bench = Bench::new();
    bench.first(1, |ask| ask.is_read() && ask.about(101), || Act::Never);
    let read = bench.run_to_ask("a read", |ask| ask.is_read() && ask.about(101));
    bench.run_for(ms(500));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    (bench, read)
}

fn served(read: &Ask, change: impl FnOnce(&mut RequestId, &mut ReadAnswer)) -> Event {
    let Ask::Read {
        request, target, ..
    } = read
    else {
        panic!("a read");
    };
    let mut request = *request;
    let mut answer = ReadAnswer {
        region_id: target.region_id,
        epoch: target.epoch,
        result: Ok(()),
    };
    change(&mut request, &mut answer);
    Event::LeaderReadDone {
        request,
        answers: vec![answer],
    }
}

#[test]
fn r06_a_read_counts_only_by_number_region_and_version() {
    type Change = fn(&mut RequestId, &mut ReadAnswer);
    let changes: [(&str, Change); 4] = [
        ("an old number", |request, _| *request = RequestId(1)),
        ("a number never used", |request, _| {
            *request = RequestId(987_654);
        }),
        ("another region", |_, answer| {
            answer.region_id = RegionId(104);
        }),
        ("another version", |_, answer| answer.epoch.version += 1),
    ];
    for (what, change) in changes {
        let (mut bench, read) = reading();
        bench.tell(served(&read, change));
        assert_eq!(bench.machine.progress().regions_confirmed, 5, "{what}");
        assert_eq!(bench.phase(), PhaseName::WaitApply, "{what}");
    }
    let (mut bench, read) = reading();
    bench.tell(served(&read, |_, _| {}));
    assert_eq!(bench.machine.progress().regions_confirmed, 6);
}

#[test]
fn r06_a_read_served_after_we_gave_it_up_proves_nothing() {
    let (mut bench, read) = reading();
    bench.when(
        |ask| ask.is_wait() && ask.about(101),
        || Act::Refuse(RegionErrorKind::NotReady),
    );
    bench.run_for(secs(6));
    bench.tell(served(&read, |_, _| {}));
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    bench.run_for(secs(20));
    assert_eq!(bench.phase(), PhaseName::WaitApply);
}

#[test]
fn r06_a_read_of_the_attempt_before_proves_nothing() {
    let (mut bench, read) = reading();
    let open = bench
        .last(|ask| ask.is_open() && ask.at(2))
        .expect("dialed");
    bench.tell(open.failed(failure(FailureKind::Transport)));
    bench.first(1, |ask| ask.is_read() && ask.about(101), || Act::Never);
    bench.withheld.clear();
    bench.run_until("attempt 2 reads", |bench| {
        bench.attempt() == 2 && bench.withheld.len() == 1
    });
    bench.run_for(ms(500));
    let ignored = bench.ignored();
    // The same region is being read now, at the same store and in the same epoch.
    bench.tell(served(&read, |_, _| {}));
    assert_eq!(bench.ignored(), ignored + 1);
    assert_eq!(bench.machine.progress().regions_confirmed, 5);
    assert_eq!(bench.phase(), PhaseName::WaitApply);
    bench.release(|ask| ask.about(101));
    bench.run_to(PhaseName::Hold);
    assert_eq!(bench.attempt(), 2);
}

#[test]
fn r06_a_lease_answer_with_an_old_or_unknown_number_extends_nothing() {
    let mut bench = Bench::new();
    bench.run_to(PhaseName::Hold);
    let old = bench.last(|ask| ask.is_lease() && ask.at(2)).expect("sent");
    let sent = *bench
        .times(|ask| ask.is_lease() && ask.at(2))
        .last()
        .expect("sent");
    bench.when(|ask| ask.is_lease() && ask.at(2), || Act::Never);
    bench.run_for(secs(100));
    let ignored = bench.ignored();
    bench.tell(old.valid(true));
    bench.tell(Event::LeaseUpdated {
        request: RequestId(987_654),
        last_lease_is_valid: true,
    });
    assert_eq!(bench.ignored(), ignored + 2);
    bench.run_to(PhaseName::Release);
    assert_eq!(bench.now, sent + secs(118));
}

#[test]
fn r06_lists_with_an_old_number_are_ignored() {
    let (mut bench, _, _) = waiting();
    let claims = bench.last(Ask::is_claims).expect("asked");
    let ignored = bench.ignored();
    let stores = bench.cluster.stores.clone();
    bench.tell(claims.claims(vec![], true));
    bench.tell(Event::StoresListed {
        request: RequestId(1),
        stores: stores[..1].to_vec(),
    });
    bench.tell(Event::RegionsScanned {
        request: RequestId(2),
        regions: vec![],
    });
    bench.tell(claims.failed(failure(FailureKind::Unsupported)));
    assert_eq!(bench.ignored(), ignored + 4);
    bench.release(|ask| ask.about(101));
    bench.run_to(PhaseName::Hold);
}

#[test]
fn r06_a_stream_opened_twice_or_by_nobody_is_ignored() {
    let (mut bench, stream, _) = waiting();
    let ignored = bench.ignored();
    bench.tell(Event::StreamOpened { stream });
    bench.tell(Event::StreamOpened {
        stream: RequestId(987_654),
    });
    bench.tell(Event::StreamEnded {
        stream: RequestId(987_654),
        reason: failure(FailureKind::Superseded),
    });
    assert_eq!(bench.ignored(), ignored + 3);
    assert_eq!(bench.phase(), PhaseName::WaitApply);
}
