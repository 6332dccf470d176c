//! What the oracle says of clients that do it wrong.

use std::time::Duration;

use super::Lab;
use crate::cluster::StreamRequest;
use crate::region::StoreId;
use crate::sim::model::{CallId, Request};
use crate::sim::oracle::{Claimed, Verdict, Violation, judge};

/// Leases all stores and waits for one region.
pub(super) fn prepared(lab: &mut Lab, seconds: u64) -> [CallId; 3] {
    let streams = [1, 2, 3].map(|store| lab.lease(store, seconds));
    let (region, leader) = lab.a_region();
    let target = lab.target(leader, region);
    lab.wait(streams[(leader - 1) as usize], &[target]);
    lab.answers.clear();
    for stream in streams {
        lab.update(stream, seconds);
    }
    streams
}

pub(super) fn finish(lab: &mut Lab, streams: [CallId; 3]) {
    lab.cluster.note_finish(lab.now);
    for stream in streams {
        lab.send(stream, StreamRequest::Finish);
    }
    lab.run_ms(20);
}

fn judged(lab: &Lab, verdict: Verdict) -> Vec<Violation> {
    let claimed = Claimed {
        verdict,
        stores: vec![StoreId(1), StoreId(2), StoreId(3)],
        lease: Some(Duration::from_secs(60)),
        window: Some(1),
        ..Claimed::default()
    };
    judge(&lab.cluster, &claimed)
}

fn properties(lab: &Lab, verdict: Verdict) -> Vec<&'static str> {
    let mut found: Vec<&str> = judged(lab, verdict).iter().map(|v| v.property).collect();
    found.dedup();
    found
}

#[test]
fn a_sound_run_is_found_sound() {
    let mut lab = Lab::new(5);
    let streams = prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    lab.run_ms(5_000);
    finish(&mut lab, streams);
    assert_eq!(judged(&lab, Verdict::Good), []);
}

#[test]
fn a_hold_with_a_split_in_a_log_is_false() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.hold(leader, region, 60_000);
    assert!(lab.split(leader, region));
    prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    let found = judged(&lab, Verdict::NotGood);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("can still be committed"));
}

#[test]
fn a_hold_before_a_leader_has_applied_is_false() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let far = lab.now + Duration::from_secs(60);
    let node = lab.cluster.stores.get_mut(&StoreId(leader)).unwrap();
    node.slow_apply = (far, 20_000);
    assert!(lab.split(leader, region));
    prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    let found = judged(&lab, Verdict::NotGood);
    assert!(
        found[0].message.contains("not applied by a leader"),
        "{found:?}"
    );
}

#[test]
fn a_hold_between_the_steps_of_a_merge_is_false() {
    let mut lab = Lab::new(20);
    lab.cluster.triggers.merges_held_until = lab.now + Duration::from_secs(60);
    assert!(lab.cluster.begin_merge());
    lab.run_ms(200);
    prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    let found = judged(&lab, Verdict::NotGood);
    assert!(
        found[0].message.contains("two steps of a merge"),
        "{found:?}"
    );
}

#[test]
fn a_hold_over_a_lapsed_lease_is_false() {
    let mut lab = Lab::new(1);
    let streams = prepared(&mut lab, 2);
    lab.run_ms(4_000);
    for stream in streams {
        assert!(!lab.update(stream, 2));
    }
    lab.cluster.note_hold(lab.now);
    let found = judged(&lab, Verdict::NotGood);
    assert_eq!(found.len(), 3, "one for each store: {found:?}");
    assert_eq!(properties(&lab, Verdict::NotGood), ["no false hold"]);
}

#[test]
fn a_hold_without_one_of_the_stores_is_false() {
    let mut lab = Lab::new(1);
    let call = lab.lease(1, 60);
    let (region, leader) = lab.a_region();
    let target = lab.target(leader, region);
    lab.wait(call, &[target]);
    lab.cluster.note_hold(lab.now);
    let found = judged(&lab, Verdict::NotGood);
    let missing = found.iter().filter(|v| v.message.contains("was not held"));
    assert_eq!(missing.count(), 2, "{found:?}");
}

#[test]
fn good_over_a_lease_that_lapsed_is_not_honest() {
    let mut lab = Lab::new(1);
    let streams = prepared(&mut lab, 2);
    lab.cluster.note_hold(lab.now);
    lab.run_ms(4_000);
    let (region, leader) = lab.a_region();
    assert!(lab.split(leader, region));
    finish(&mut lab, streams);
    assert_eq!(properties(&lab, Verdict::NotGood), ["no late trust"]);
    assert_eq!(
        properties(&lab, Verdict::Good),
        ["honest verdict", "no late trust"]
    );
    let found = judged(&lab, Verdict::Good);
    assert!(
        found.iter().any(|v| v.message.contains("was proposed")),
        "{found:?}"
    );
}

#[test]
fn good_without_finish_everywhere_is_not_honest() {
    let mut lab = Lab::new(1);
    let streams = prepared(&mut lab, 60);
    lab.cluster.note_hold(lab.now);
    lab.cluster.note_finish(lab.now);
    lab.send(streams[0], StreamRequest::Finish);
    lab.run_ms(20);
    assert_eq!(judged(&lab, Verdict::Good).len(), 2);
}

#[test]
fn a_lease_longer_than_said_is_no_clean_end() {
    let mut lab = Lab::new(1);
    lab.lease(1, 61);
    assert_eq!(properties(&lab, Verdict::NotHeld), ["clean end"]);
}

#[test]
fn more_waits_than_the_window_are_seen() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    let target = lab.target(leader, region);
    lab.wait(call, &[target, target]);
    assert_eq!(properties(&lab, Verdict::NotHeld), ["bounded window"]);
}

#[test]
fn forbidden_targets_are_seen() {
    let mut lab = Lab::new(1);
    let store = StoreId(0);
    lab.ask(Request::OpenStream { store });
    lab.run_ms(10);
    assert_eq!(properties(&lab, Verdict::NotHeld), ["no forbidden target"]);
}
