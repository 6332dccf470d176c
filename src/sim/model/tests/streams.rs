use super::Lab;
use crate::cluster::StreamRequest;
use crate::region::StoreId;
use crate::sim::model::node::Life;
use crate::sim::model::{Answer, Code, Request, StreamReply};

#[test]
fn s2_a_wait_without_a_lease_ends_the_stream() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.open(leader);
    let target = lab.target(leader, region);
    lab.wait(call, &[target]);
    let status = lab.ended(call);
    assert_eq!(status.code, Code::FailedPrecondition);
    assert!(status.message.contains("the lease has expired"));
}

#[test]
fn s2_an_empty_list_is_not_answered() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    lab.wait(call, &[]);
    assert!(lab.take(call).is_empty());
    assert!(!lab.update(call, 60));
}

#[test]
fn s7_opening_a_stream_ends_the_older_one() {
    let mut lab = Lab::new(1);
    let first = lab.open(1);
    let second = lab.open(1);
    lab.run_ms(200);
    let status = lab.ended(first);
    assert_eq!(status.code, Code::Cancelled);
    assert_eq!(status.message, "the loop has been aborted by server");
    // The stores of others are not disturbed.
    lab.open(2);
    assert!(lab.take(second).is_empty());
}

#[test]
fn s8_1_half_close_cancels_and_leaves_the_lease() {
    let mut lab = Lab::new(1);
    let call = lab.lease(1, 60);
    lab.cluster
        .handle_request(call, Request::HalfClose, lab.now);
    lab.run_ms(10);
    let status = lab.ended(call);
    assert_eq!(
        (status.code, status.message.as_str()),
        (Code::Cancelled, "CANCELLED")
    );
    assert!(lab.cluster.stores[&StoreId(1)].lease.is_suspended(lab.now));
}

#[test]
fn s8_4_requests_before_a_half_close_are_served() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
    lab.cluster
        .handle_request(call, Request::HalfClose, lab.now);
    lab.run_ms(10);
    let answers = lab.take(call);
    assert!(matches!(
        answers[0],
        Answer::Stream(StreamReply::LeaseUpdated { .. })
    ));
    assert!(matches!(&answers[1], Answer::End(status) if status.code == Code::Cancelled));
}

#[test]
fn s8_6_a_dropped_call_leaves_the_lease() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    lab.cluster.handle_request(call, Request::Cancel, lab.now);
    lab.run_ms(300);
    assert!(lab.take(call).is_empty());
    assert!(!lab.split(leader, region));
}

#[test]
fn s8_7_finish_does_not_wait_for_pending_regions() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    lab.hold(leader, region, 60_000);
    lab.propose(leader, region, crate::sim::model::command::Command::Put);
    let target = lab.target(leader, region);
    lab.wait(call, &[target]);
    lab.send(call, StreamRequest::Finish);
    lab.run_ms(10);
    let answers = lab.take(call);
    assert_eq!(answers.len(), 2, "{answers:?}");
}

#[test]
fn s9_4_garbage_looks_like_a_half_close() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    lab.cluster
        .handle_request(call, Request::StreamGarbage, lab.now);
    lab.run_ms(10);
    assert_eq!(lab.ended(call).message, "CANCELLED");
}

#[test]
fn s6_a_store_that_is_starting_or_stopping_is_not_initialized() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    lab.cluster.set_life(StoreId(1), Life::ServiceOnly);
    lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
    lab.run_ms(10);
    let status = lab.ended(call);
    assert_eq!(status.code, Code::Unavailable);
    assert_eq!(status.message, "coprocessor not initialized");
}

#[test]
fn s13_11_a_stopping_store_lists_nothing_and_says_ok() {
    let mut lab = Lab::new(5);
    let (_, leader) = lab.a_region();
    assert!(!lab.claims(leader).is_empty());
    lab.cluster.set_life(StoreId(leader), Life::ServiceOnly);
    assert!(lab.claims(leader).is_empty());
    lab.cluster.set_life(StoreId(leader), Life::Down);
    let store = StoreId(leader);
    let call = lab.ask(Request::ListClaims { store });
    lab.run_ms(10);
    assert_eq!(lab.ended(call).code, Code::Unavailable);
}

#[test]
fn a_restart_forgets_the_lease_and_ends_the_stream() {
    let mut lab = Lab::new(1);
    let call = lab.lease(1, 60);
    lab.cluster.set_life(StoreId(1), Life::Down);
    lab.cluster.set_life(StoreId(1), Life::Up);
    lab.run_ms(10);
    assert_eq!(lab.ended(call).code, Code::Unavailable);
    assert!(!lab.cluster.stores[&StoreId(1)].lease.is_suspended(lab.now));
}

#[test]
fn a_partitioned_store_says_so() {
    let mut lab = Lab::new(1);
    let store = StoreId(1);
    lab.cluster.set_partitioned(store);
    let call = lab.ask(Request::ListClaims { store });
    lab.run_ms(10);
    let status = lab.ended(call);
    assert_eq!(status.code, Code::Internal);
    assert!(
        status
            .message
            .ends_with("doesn't support snapshot backup yet.")
    );
    let call = lab.open(1);
    lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
    lab.run_ms(10);
    assert_eq!(lab.ended(call).code, Code::Unavailable);
}
