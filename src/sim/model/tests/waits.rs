use super::Lab;
use crate::cluster::StreamRequest;
use crate::region::{RegionEpoch, RegionId, StoreId, WaitTarget};
use crate::sim::model::command::Command;
use crate::sim::model::{CallId, RegionErrorDetail, Request};

/// A region whose leader has something in its log that reaches nobody.
fn blocked() -> (Lab, RegionId, u64, CallId) {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    lab.hold(leader, region, 2_000);
    assert!(lab.propose(leader, region, Command::Put));
    (lab, region, leader, call)
}

#[test]
fn s3_idle_regions_are_answered_at_once_not_in_order() {
    let mut lab = Lab::new(30);
    let (_, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    let targets: Vec<WaitTarget> = lab
        .claims(leader)
        .iter()
        .map(|claim| WaitTarget {
            region_id: claim.region.id,
            epoch: claim.region.epoch,
        })
        .collect();
    assert!(targets.len() > 5);
    lab.wait(call, &targets);
    let answered = lab.waits(call);
    assert_eq!(answered.len(), targets.len());
    assert!(answered.iter().all(|(_, result)| result.is_ok()));
    assert_eq!(answered[0].0, targets[0]);
    assert_eq!(answered[1].0, targets[targets.len() - 1]);
}

#[test]
fn s4_1_a_follower_confirms_an_idle_region() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [follower, _] = lab.followers(leader);
    let call = lab.lease(follower, 60);
    let target = lab.target(follower, region);
    lab.wait(call, &[target]);
    assert_eq!(lab.waits(call), [(target, Ok(()))]);
}

#[test]
fn s4_2_a_follower_without_the_last_entry_confirms_at_once() {
    let (mut lab, region, leader, waiting) = blocked();
    let target = lab.target(leader, region);
    lab.wait(waiting, &[target]);
    assert!(lab.waits(waiting).is_empty());
    let [follower, _] = lab.followers(leader);
    let call = lab.lease(follower, 60);
    lab.wait(call, &[target]);
    assert_eq!(lab.waits(call), [(target, Ok(()))]);
    lab.run_ms(4_000);
    assert_eq!(lab.waits(waiting), [(target, Ok(()))]);
}

#[test]
fn s4_3_a_follower_that_voted_waits_and_one_that_did_not_does_not() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [voted, not] = lab.followers(leader);
    let leader_id = lab.peer(leader, region).id;
    lab.peer_mut(voted, region).vote = Some(leader_id);
    lab.peer_mut(not, region).vote = None;
    // The entry reaches both, but what they say of it reaches nobody.
    lab.propose(leader, region, Command::Put);
    lab.run(std::time::Duration::from_micros(460));
    let far = lab.now + std::time::Duration::from_secs(3);
    for store in [voted, not] {
        assert_eq!(
            lab.peer(store, region).commit,
            lab.peer(store, region).applied
        );
        lab.peer_mut(store, region).deaf_until = far;
    }
    let target = lab.target(leader, region);
    for (store, answers) in [(voted, 0), (not, 1)] {
        let call = lab.lease(store, 60);
        let behind = lab.peer(store, region).last_index() > lab.peer(store, region).applied;
        assert!(behind, "store {store} has the entry");
        lab.wait(call, &[target]);
        assert_eq!(lab.waits(call).len(), answers, "store {store}");
    }
}

#[test]
fn s4_5_4_8_unknown_regions_and_other_epochs_are_refused() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let call = lab.lease(leader, 60);
    let target = lab.target(leader, region);
    let unknown = WaitTarget {
        region_id: RegionId(987_654),
        ..target
    };
    let epochs = [(1, 0), (0, 1)].map(|(conf_ver, version)| RegionEpoch {
        conf_ver: target.epoch.conf_ver + conf_ver,
        version: target.epoch.version + version,
    });
    let other = epochs.map(|epoch| WaitTarget { epoch, ..target });
    lab.wait(call, &[target, unknown, other[0], other[1]]);
    let answered = lab.waits(call);
    assert_eq!(answered.len(), 4);
    for (answer, result) in answered {
        match result {
            Ok(()) => assert_eq!(answer, target),
            Err(error) if answer == unknown => {
                assert_eq!(error.message, "region 987654 not found");
            }
            Err(error) => assert!(matches!(
                error.detail,
                RegionErrorDetail::EpochNotMatch { ref current } if current.len() == 1
            )),
        }
    }
}

#[test]
fn s5_the_second_wait_is_a_duplicate_also_for_a_dead_stream() {
    let (mut lab, region, leader, first) = blocked();
    let target = lab.target(leader, region);
    lab.wait(first, &[target]);
    let other_epoch = WaitTarget {
        epoch: RegionEpoch::default(),
        ..target
    };
    lab.wait(first, &[other_epoch]);
    let duplicated = lab.waits(first);
    let [(_, Err(error))] = duplicated.as_slice() else {
        panic!("{duplicated:?}");
    };
    assert!(error.message.ends_with("note = Some(Duplicated)"));
    assert_eq!(error.detail, RegionErrorDetail::None);
    lab.cluster.handle_request(first, Request::Cancel, lab.now);
    lab.run_ms(5);
    let second = lab.open(leader);
    lab.wait(second, &[target]);
    assert!(lab.waits(second)[0].1.is_err());
    lab.run_ms(4_000);
    lab.wait(second, &[target]);
    assert_eq!(lab.waits(second), [(target, Ok(()))]);
}

#[test]
fn s6_a_wait_at_a_cut_off_leader_is_stale_after_healing() {
    let (mut lab, region, leader, call) = blocked();
    let target = lab.target(leader, region);
    lab.cut_off(leader);
    lab.wait(call, &[target]);
    lab.run_ms(10_000);
    assert!(lab.waits(call).is_empty(), "nothing while it is cut off");
    lab.join(leader);
    lab.run_ms(3_000);
    let answered = lab.waits(call);
    let [(_, Err(error))] = answered.as_slice() else {
        panic!("{answered:?}");
    };
    assert_eq!(error.detail, RegionErrorDetail::StaleCommand);
    assert!(error.message.contains("StaleCommand { expected_term: "));
}

#[test]
fn s6_a_peer_that_goes_away_reports_success() {
    let (mut lab, region, leader, call) = blocked();
    let target = lab.target(leader, region);
    lab.wait(call, &[target]);
    let peer = lab.peer(leader, region).id;
    lab.cluster.destroy(crate::sim::model::event::PeerAddress {
        store: StoreId(leader),
        region,
        peer,
    });
    lab.run_ms(10);
    assert_eq!(lab.waits(call), [(target, Ok(()))]);
    lab.send(
        call,
        StreamRequest::WaitApply {
            regions: vec![target],
        },
    );
    lab.run_ms(10);
    assert!(lab.waits(call)[0].1.is_err());
}

#[test]
fn s13_4_a_split_while_waiting_is_a_success_with_the_old_epoch() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let target = lab.target(leader, region);
    lab.hold(leader, region, 1_000);
    assert!(lab.split(leader, region));
    let call = lab.lease(leader, 60);
    lab.wait(call, &[target]);
    assert!(lab.waits(call).is_empty());
    lab.run_ms(3_000);
    assert_eq!(lab.waits(call), [(target, Ok(()))]);
    assert_ne!(lab.target(leader, region).epoch, target.epoch);
}
