use std::time::Duration;

use super::Lab;
use crate::region::{PeerId, RegionId, StoreId};
use crate::sim::model::command::Command;
use crate::sim::model::{ReadKind, ReadRequest, RegionErrorDetail, StorageMode};

fn outcome(lab: &mut Lab, store: u64, read: ReadRequest) -> Result<(), RegionErrorDetail> {
    let call = lab.read(store, read);
    lab.run_ms(20);
    let result = lab.read_result(call).expect("answered");
    result.map_err(|error| error.detail)
}

#[test]
fn s15_2_a_healthy_leader_serves() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let read = lab.read_request(leader, region);
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
    // Awake now, and within its own lease.
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
}

#[test]
fn s15_2_one_of_two_followers_is_enough() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [other, _] = lab.followers(leader);
    lab.cut_off(other);
    let read = lab.read_request(leader, region);
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
}

#[test]
fn s15_3_the_wrong_place_and_wrong_data_are_refused() {
    let mut lab = Lab::new(2);
    let (region, leader) = lab.a_region();
    let [follower, _] = lab.followers(leader);
    let good = lab.read_request(leader, region);
    let at_follower = lab.read_request(follower, region);
    let not_leader = outcome(&mut lab, follower, at_follower);
    assert!(matches!(
        not_leader,
        Err(RegionErrorDetail::NotLeader { leader: Some(peer), .. }) if peer.store_id.0 == leader
    ));
    let replica = ReadRequest {
        replica_read: true,
        ..at_follower
    };
    assert_eq!(outcome(&mut lab, follower, replica), Ok(()));
    let stale = ReadRequest {
        stale_read: true,
        ..at_follower
    };
    assert!(matches!(
        outcome(&mut lab, follower, stale),
        Err(RegionErrorDetail::DataIsNotReady { .. })
    ));
    let unknown = ReadRequest {
        region_id: RegionId(987_654),
        ..good
    };
    assert!(matches!(
        outcome(&mut lab, leader, unknown),
        Err(RegionErrorDetail::RegionNotFound { .. })
    ));
    let elsewhere = ReadRequest {
        peer_store: StoreId(follower),
        ..good
    };
    assert!(matches!(
        outcome(&mut lab, leader, elsewhere),
        Err(RegionErrorDetail::StoreNotMatch { .. })
    ));
    let wrong_peer = ReadRequest {
        peer_id: PeerId(987_654),
        ..good
    };
    assert!(matches!(
        outcome(&mut lab, leader, wrong_peer),
        Err(RegionErrorDetail::MismatchPeerId { .. })
    ));
    let old_term = ReadRequest { term: 1, ..good };
    assert_eq!(
        outcome(&mut lab, leader, old_term),
        Err(RegionErrorDetail::StaleCommand)
    );
    let high_term = ReadRequest { term: 999, ..good };
    assert_eq!(outcome(&mut lab, leader, high_term), Ok(()));
}

#[test]
fn s15_3_only_the_version_is_compared() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let mut read = lab.read_request(leader, region);
    read.epoch.conf_ver = 0;
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
    read.epoch.version += 1;
    assert!(matches!(
        outcome(&mut lab, leader, read),
        Err(RegionErrorDetail::EpochNotMatch { .. })
    ));
}

#[test]
fn s15_4_an_idle_leader_that_is_cut_off_never_serves() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.cut_off(leader);
    let read = lab.read_request(leader, region);
    let call = lab.read(leader, read);
    lab.run_ms(400);
    assert_eq!(lab.read_result(call), None, "late");
    lab.run_ms(1_000);
    let error = lab.read_result(call).unwrap().unwrap_err();
    assert_eq!(error.detail, RegionErrorDetail::StaleCommand);
    assert!(lab.claims(leader).is_empty(), "the claim is gone");
    assert!(matches!(
        outcome(&mut lab, leader, read),
        Err(RegionErrorDetail::NotLeader { leader: None, .. })
    ));
}

#[test]
fn s15_4_a_read_in_flight_when_the_net_heals_is_served() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.cut_off(leader);
    lab.run_ms(50);
    let read = lab.read_request(leader, region);
    let call = lab.read(leader, read);
    lab.run_ms(200);
    lab.join(leader);
    lab.run_ms(400);
    assert_eq!(lab.read_result(call), Some(Ok(())));
    assert!(lab.peer(leader, region).is_leader());
}

#[test]
fn s15_4_a_busy_leader_serves_within_its_lease_only() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let read = lab.read_request(leader, region);
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
    lab.cut_off(leader);
    let served = outcome(&mut lab, leader, read);
    assert_eq!(served, Ok(()), "within the lease");
    lab.run_ms(500);
    let call = lab.read(leader, read);
    lab.run_ms(1_500);
    assert!(lab.read_result(call).unwrap().is_err());
}

#[test]
fn s15_4_a_store_whose_raft_thread_is_stuck_answers_late() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let until = lab.now + Duration::from_secs(3);
    lab.cluster
        .stores
        .get_mut(&StoreId(leader))
        .unwrap()
        .stuck_until = until;
    let read = lab.read_request(leader, region);
    let call = lab.read(leader, read);
    lab.run_ms(2_900);
    assert_eq!(lab.read_result(call), None);
    let stream = lab.open(leader);
    assert!(!lab.update(stream, 60), "leases go on");
    lab.run_ms(500);
    assert!(lab.read_result(call).is_some());
}

#[test]
fn s15_5_uncommitted_commands_do_not_hinder_a_read() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.hold(leader, region, 60_000);
    assert!(lab.split(leader, region));
    let read = lab.read_request(leader, region);
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
}

#[test]
fn s15_5_a_committed_split_hinders_it() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let far = lab.now + Duration::from_secs(60);
    lab.cluster
        .stores
        .get_mut(&StoreId(leader))
        .unwrap()
        .slow_apply = (far, 2_000);
    lab.split(leader, region);
    lab.run_ms(10);
    let read = lab.read_request(leader, region);
    let Err(RegionErrorDetail::ReadIndexNotReady { reason, .. }) = outcome(&mut lab, leader, read)
    else {
        panic!("refused");
    };
    assert_eq!(reason, "can not read index due to split");
}

#[test]
fn s15_5_a_new_leader_serves_after_its_first_entry_is_committed() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [next, _] = lab.followers(leader);
    lab.hold(next, region, 500);
    lab.cluster
        .with_peer(StoreId(next), region, false, |peer, ctx| {
            peer.campaign_now(true, ctx);
        });
    lab.run_ms(10);
    let read = lab.read_request(next, region);
    let refused = outcome(&mut lab, next, read);
    assert_eq!(refused, Err(RegionErrorDetail::StaleCommand));
    lab.run_ms(1_500);
    assert_eq!(outcome(&mut lab, next, read), Ok(()));
}

#[test]
fn s15_6_which_read_suits_which_storage() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let kv = lab.read_request(leader, region);
    let raw = ReadRequest {
        kind: ReadKind::RawBatchGet,
        ..kv
    };
    for (mode, kv_served, raw_served) in [
        (StorageMode::V1, true, true),
        (StorageMode::V1Ttl, false, true),
        (StorageMode::V2, true, false),
    ] {
        lab.cluster.set_storage(StoreId(leader), mode);
        assert_eq!(outcome(&mut lab, leader, kv).is_ok(), kv_served, "{mode:?}");
        assert_eq!(
            outcome(&mut lab, leader, raw).is_ok(),
            raw_served,
            "{mode:?}"
        );
    }
}

#[test]
fn s15_7_a_read_wakes_an_idle_region_for_a_moment() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let before = lab.peer(leader, region).last_index();
    let read = lab.read_request(leader, region);
    assert_eq!(outcome(&mut lab, leader, read), Ok(()));
    assert!(lab.peer(leader, region).armed.tick);
    lab.run_ms(3_000);
    assert!(!lab.peer(leader, region).armed.tick, "asleep again");
    assert_eq!(lab.peer(leader, region).last_index(), before);
}

#[test]
fn a_write_is_applied_everywhere() {
    let mut lab = Lab::new(3);
    let (region, leader) = lab.a_region();
    assert!(lab.propose(leader, region, Command::Put));
    lab.run_ms(3_000);
    let last = lab.peer(leader, region).last_index();
    for store in 1..=3 {
        assert_eq!(lab.peer(store, region).applied, last);
    }
}
