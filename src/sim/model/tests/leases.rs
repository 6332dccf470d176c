use super::Lab;
use crate::cluster::StreamRequest;
use crate::region::StoreId;
use crate::sim::model::command::Command;
use crate::sim::model::{Answer, Code, StreamReply};

fn left(lab: &Lab, store: u64) -> u64 {
    lab.cluster.stores[&StoreId(store)]
        .lease
        .seconds_left(lab.now)
}

#[test]
fn s1_2_1_3_first_lease_is_not_valid_the_next_one_is() {
    let mut lab = Lab::new(1);
    let call = lab.lease(1, 60);
    assert!(lab.update(call, 60));
}

#[test]
fn s1_7_finish_answers_and_ends_with_ok() {
    let mut lab = Lab::new(1);
    let call = lab.lease(1, 60);
    lab.send(call, StreamRequest::Finish);
    // Never looked at.
    lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
    lab.run_ms(10);
    let answers = lab.take(call);
    let valid = |last_lease_is_valid| {
        Answer::Stream(StreamReply::LeaseUpdated {
            last_lease_is_valid,
        })
    };
    assert_eq!(answers[0], valid(true));
    assert!(matches!(&answers[1], Answer::End(status) if status.code == Code::Ok));
    assert_eq!(answers.len(), 2);
    assert_eq!(left(&lab, 1), 0);
}

#[test]
fn s1_10_finish_without_a_lease_is_not_valid() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    lab.send(call, StreamRequest::Finish);
    lab.run_ms(10);
    let reply = StreamReply::LeaseUpdated {
        last_lease_is_valid: false,
    };
    assert_eq!(lab.take(call)[0], Answer::Stream(reply));
}

#[test]
fn s1_16_a_lease_belongs_to_the_store_not_to_the_stream() {
    let mut lab = Lab::new(1);
    let first = lab.lease(1, 60);
    let second = lab.open(1);
    assert_eq!(lab.ended(first).code, Code::Cancelled);
    assert!(lab.update(second, 20));
    assert!(left(&lab, 1) > 50);
}

#[test]
fn s12_a_lease_refuses_some_kinds_at_the_leader_only() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [follower, _] = lab.followers(leader);
    lab.lease(follower, 60);
    assert!(lab.split(leader, region), "only a follower is leased");
    lab.run_ms(100);
    lab.lease(leader, 60);
    assert!(!lab.split(leader, region));
    assert!(!lab.propose(leader, region, Command::Ingest));
    assert!(!lab.propose(leader, region, Command::CompactLog));
    assert!(lab.propose(leader, region, Command::Put));
}

#[test]
fn s12_what_was_proposed_before_takes_effect_under_the_lease() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.hold(leader, region, 500);
    assert!(lab.split(leader, region));
    for store in 1..=3 {
        lab.lease(store, 60);
    }
    let before = lab.region(leader, region).epoch;
    lab.run_ms(2_000);
    assert_eq!(lab.region(leader, region).epoch.version, before.version + 1);
    assert_eq!(lab.cluster.leaders().len(), 2);
}
