//! What the oracle says of clients that do too much, trust too long or end for
//! no reason.

use std::time::Duration;

use super::Lab;
use super::judged::{finish, prepared};
use crate::cluster::StreamRequest;
use crate::error::ErrorKind;
use crate::region::{StoreId, StoreState};
use crate::sim::fault::{FaultKind, FaultPlan};
use crate::sim::model::{Answer, Request};
use crate::sim::oracle::{Claimed, Verdict, Violation, judge};

fn of(lab: &Lab, claimed: &Claimed, property: &str) -> Vec<Violation> {
    let mut found = judge(&lab.cluster, claimed);
    found.retain(|violation| violation.property == property);
    found
}

fn good() -> Claimed {
    Claimed {
        verdict: Verdict::Good,
        ..Claimed::default()
    }
}

#[test]
fn trust_beyond_the_last_answered_renewal_is_late() {
    let mut lab = Lab::new(1);
    let streams = prepared(&mut lab, 10);
    lab.cluster.note_hold(lab.now);
    lab.run_ms(8_000);
    assert_eq!(of(&lab, &good(), "no late trust"), []);
    // These renewals keep the leases, and the client has no answer to them.
    let far = lab.now + Duration::from_secs(600);
    for node in lab.cluster.stores.values_mut() {
        node.slow_answer = (far, 1);
    }
    for stream in streams {
        lab.send(stream, StreamRequest::UpdateLease { seconds: 10 });
        lab.cluster.mute_stream(stream);
    }
    lab.run_ms(3_000);
    lab.cluster.note_finish(lab.now);
    let found = of(&lab, &good(), "no late trust");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_loss_that_is_told_late_is_late_trust() {
    for (after, violations) in [(8_500, 0), (12_000, 3)] {
        let mut lab = Lab::new(1);
        prepared(&mut lab, 10);
        lab.cluster.note_hold(lab.now);
        lab.run_ms(after);
        lab.cluster.note_lost(lab.now);
        let claimed = Claimed {
            verdict: Verdict::NotGood,
            ..Claimed::default()
        };
        let found = of(&lab, &claimed, "no late trust");
        assert_eq!(found.len(), violations, "{found:?}");
    }
}

#[test]
fn a_renewal_answered_late_is_not_trusted_from_its_answer_on() {
    let mut lab = Lab::new(1);
    let streams = prepared(&mut lab, 10);
    lab.cluster.note_hold(lab.now);
    lab.run_ms(8_000);
    for stream in streams {
        lab.send(stream, StreamRequest::UpdateLease { seconds: 10 });
    }
    lab.run_ms(100);
    // Sent 8 s after the first ones: good until 17 s after them.
    lab.run_ms(8_700);
    assert_eq!(of(&lab, &good(), "no late trust"), []);
    lab.run_ms(1_000);
    finish(&mut lab, streams);
    assert_eq!(of(&lab, &good(), "no late trust").len(), 3);
}

#[test]
fn calls_to_stores_that_take_no_part_are_seen() {
    let mut lab = Lab::new(1);
    let node = lab.cluster.stores.get_mut(&StoreId(2)).unwrap();
    node.info.state = StoreState::Tombstone;
    let node = lab.cluster.stores.get_mut(&StoreId(3)).unwrap();
    node.info
        .labels
        .insert("engine".to_owned(), "tiflash".to_owned());
    for store in [0, 2, 3].map(StoreId) {
        lab.ask(Request::ListClaims { store });
    }
    let store = StoreId(2);
    lab.ask(Request::OpenStream { store });
    let claimed = Claimed::default();
    assert_eq!(of(&lab, &claimed, "no forbidden target").len(), 4);
}

#[test]
fn a_store_whose_stream_was_taken_is_left_alone() {
    let mut lab = Lab::new(1);
    let store = StoreId(1);
    lab.open(1);
    lab.cluster
        .strike(crate::sim::model::strike::Strike::RivalOpens(store, 1));
    lab.run_ms(500);
    let claimed = Claimed::default();
    assert_eq!(of(&lab, &claimed, "no forbidden target"), []);
    lab.ask(Request::ListClaims { store });
    assert_eq!(of(&lab, &claimed, "no forbidden target").len(), 1);
}

#[test]
fn a_store_that_is_left_to_somebody_else_gets_no_finish() {
    let mut lab = Lab::new(1);
    lab.lease(1, 60);
    // Somebody else's: what the first client left behind.
    lab.cluster.history.streams.clear();
    let call = lab.open(1);
    assert!(lab.update(call, 60));
    lab.send(call, StreamRequest::Finish);
    lab.run_ms(10);
    assert_eq!(of(&lab, &Claimed::default(), "no forbidden target"), []);
    let claimed = Claimed {
        leaves_foreign: true,
        ..Claimed::default()
    };
    assert_eq!(of(&lab, &claimed, "no forbidden target").len(), 1);
}

#[test]
fn asking_again_without_a_pause_is_too_much_work() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let ask = |lab: &mut Lab| {
        let read = lab.read_request(leader, region);
        let call = lab.read(leader, read);
        lab.run_ms(2);
        assert!(matches!(lab.take(call).as_slice(), [Answer::Read(_)]));
    };
    for _ in 0..20 {
        ask(&mut lab);
    }
    assert_eq!(of(&lab, &Claimed::default(), "bounded work"), []);
    for _ in 0..20 {
        ask(&mut lab);
    }
    assert_eq!(of(&lab, &Claimed::default(), "bounded work").len(), 1);
    // The same over more time is not.
    lab.run_ms(20_000);
    ask(&mut lab);
    assert_eq!(of(&lab, &Claimed::default(), "bounded work"), []);
}

#[test]
fn store_lists_and_listings_are_work_too() {
    let mut lab = Lab::new(1);
    for _ in 0..60 {
        lab.ask(Request::ListStores);
        let store = StoreId(1);
        lab.ask(Request::ListClaims { store });
        lab.run_ms(2);
    }
    assert_eq!(of(&lab, &Claimed::default(), "bounded work").len(), 2);
}

const ENDS: &str = "the run ends as it should";

fn failed(verdict: Verdict, failed: ErrorKind) -> Claimed {
    Claimed {
        verdict,
        failed: Some(failed),
        prepare_timeout: Some(Duration::from_secs(300)),
        ..Claimed::default()
    }
}

#[test]
fn no_time_is_no_reason_when_nothing_went_wrong() {
    let mut lab = Lab::new(1);
    lab.ask(Request::ListStores);
    lab.run_ms(300_000);
    let in_vain = failed(Verdict::NotHeld, ErrorKind::PrepareTimeout);
    assert_eq!(of(&lab, &in_vain, ENDS).len(), 1);
    let taken = failed(Verdict::NotHeld, ErrorKind::Superseded);
    assert_eq!(of(&lab, &taken, ENDS), []);
    // A store that is gone is a reason.
    assert!(lab.begin(FaultKind::StoreGone));
    assert_eq!(of(&lab, &in_vain, ENDS), []);
}

#[test]
fn faults_that_go_on_to_the_end_are_a_reason() {
    for (stop_after, violations) in [(10, 1), (290, 0)] {
        let plan = FaultPlan {
            stop_after: Duration::from_secs(stop_after),
            ..FaultPlan::none().with(FaultKind::Write, 1)
        };
        let mut lab = Lab::with_plan(1, plan);
        lab.ask(Request::ListStores);
        lab.run_ms(300_000);
        let in_vain = failed(Verdict::NotHeld, ErrorKind::PrepareTimeout);
        assert_eq!(of(&lab, &in_vain, ENDS).len(), violations);
    }
}

#[test]
fn a_hold_is_not_lost_for_nothing() {
    let mut lab = Lab::new(1);
    prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    let lost = failed(Verdict::NotGood, ErrorKind::LeaseLost);
    assert_eq!(of(&lab, &lost, ENDS).len(), 1);
    assert_eq!(of(&lab, &good(), ENDS), []);
}
