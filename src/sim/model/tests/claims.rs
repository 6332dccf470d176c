use std::time::Duration;

use super::Lab;
use crate::region::{PeerRole, RegionId, StoreId};
use crate::sim::model::command::Command;
use crate::sim::model::peer::PeerTimer;

fn pending(lab: &mut Lab, store: u64, region: RegionId) -> bool {
    let claims = lab.claims(store);
    let mut of = claims.iter().filter(|claim| claim.region.id == region);
    of.next().expect("claimed").has_pending_admin
}

#[test]
fn s13_1_leaders_only_each_once() {
    let mut lab = Lab::new(40);
    let mut seen = Vec::new();
    for store in 1..=3 {
        seen.extend(lab.claims(store).into_iter().map(|claim| claim.region.id));
    }
    seen.sort_unstable();
    let regions = lab.cluster.leaders().len();
    seen.dedup();
    assert_eq!(seen.len(), regions);
}

#[test]
fn s13_2_what_is_proposed_shows_only_for_conf_changes() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.hold(leader, region, 60_000);
    assert!(lab.split(leader, region));
    assert!(!pending(&mut lab, leader, region));
    let mut lab = Lab::new(1);
    lab.hold(leader, region, 60_000);
    let at = lab.cluster.leaders()[0];
    let command = lab.cluster.conf_command(at).unwrap();
    assert!(lab.propose(leader, region, command));
    assert!(pending(&mut lab, leader, region));
}

#[test]
fn s13_2_a_committed_split_is_pending_until_applied() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let far = lab.now + Duration::from_secs(60);
    lab.cluster
        .stores
        .get_mut(&StoreId(leader))
        .unwrap()
        .slow_apply = (far, 2_000);
    lab.split(leader, region);
    lab.run_ms(50);
    assert!(pending(&mut lab, leader, region));
    lab.run_ms(3_000);
    assert!(!pending(&mut lab, leader, region));
}

#[test]
fn s13_2_a_new_leader_is_not_pending_for_its_own_first_entry() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [next, _] = lab.followers(leader);
    lab.hold(next, region, 60_000);
    lab.cluster
        .with_peer(StoreId(next), region, false, |peer, ctx| {
            peer.campaign_now(true, ctx);
        });
    lab.run_ms(10);
    assert!(lab.peer(next, region).is_leader());
    assert!(lab.peer(next, region).commit < lab.peer(next, region).last_index());
    assert!(!pending(&mut lab, next, region));
    let call = lab.lease(next, 60);
    let target = lab.target(next, region);
    lab.wait(call, &[target]);
    assert!(lab.waits(call).is_empty(), "its first entry is waited for");
}

#[test]
fn s13_2_a_new_leader_is_pending_until_what_it_inherited_is_applied() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let [next, other] = lab.followers(leader);
    lab.propose(leader, region, Command::Put);
    lab.run(Duration::from_micros(460));
    // The old leader and the third one hear nothing any more.
    let far = lab.now + Duration::from_secs(60);
    assert!(lab.peer(next, region).last_index() > lab.peer(next, region).applied);
    lab.peer_mut(leader, region).deaf_until = far;
    lab.hold(next, region, 60_000);
    lab.cluster
        .with_peer(StoreId(next), region, false, |peer, ctx| {
            peer.campaign_now(true, ctx);
        });
    lab.run_ms(10);
    assert!(lab.peer(next, region).is_leader(), "{other}");
    assert!(pending(&mut lab, next, region));
}

#[test]
fn s13_3_a_merge_begun_before_goes_on_under_the_lease() {
    let mut lab = Lab::new(20);
    lab.cluster.triggers.merges_held_until = lab.now + Duration::from_secs(5);
    assert!(lab.cluster.begin_merge());
    lab.run_ms(100);
    let (source, at, merge) = lab
        .cluster
        .leaders()
        .into_iter()
        .find_map(|at| {
            let peer = lab.peer(at.store.0, at.region);
            Some((at.region, at.store.0, peer.merge.clone()?))
        })
        .expect("a region between the steps");
    for store in 1..=3 {
        lab.lease(store, 60);
    }
    assert!(pending(&mut lab, at, source));
    let target_at = lab.cluster.leader_of(merge.target).unwrap().store.0;
    let before = lab.region(target_at, merge.target);
    assert!(!pending(&mut lab, target_at, merge.target));
    let source_region = lab.region(at, source);
    lab.run_ms(8_000);
    let after = lab.region(target_at, merge.target);
    let newer = before.epoch.version.max(source_region.epoch.version) + 1;
    assert_eq!(after.epoch.version, newer);
    assert_eq!(after.epoch.conf_ver, before.epoch.conf_ver);
    assert!(after.range.contains(&source_region.range));
    for store in 1..=3 {
        let gone = lab.claims(store).iter().all(|c| c.region.id != source);
        assert!(gone, "store {store}");
    }
}

#[test]
fn s13_3_a_merge_is_rolled_back_when_its_target_was_split() {
    let mut lab = Lab::new(20);
    lab.cluster.triggers.merges_held_until = lab.now + Duration::from_secs(2);
    assert!(lab.cluster.begin_merge());
    lab.run_ms(100);
    let (source, at, merge) = lab
        .cluster
        .leaders()
        .into_iter()
        .find_map(|at| {
            let peer = lab.peer(at.store.0, at.region);
            Some((at.region, at.store.0, peer.merge.clone()?))
        })
        .unwrap();
    let prepared = lab.region(at, source).epoch;
    let target_at = lab.cluster.leader_of(merge.target).unwrap().store.0;
    assert!(lab.split(target_at, merge.target));
    lab.run_ms(100);
    for store in 1..=3 {
        lab.lease(store, 60);
    }
    lab.run_ms(5_000);
    let after = lab.region(at, source).epoch;
    assert_eq!(after.version, prepared.version + 1);
    assert!(!pending(&mut lab, at, source));
}

#[test]
fn s13_5_an_idle_leader_that_is_cut_off_claims_until_it_hears_again() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.cut_off(leader);
    let mut both = false;
    for _ in 0..40 {
        lab.run_ms(500);
        let claimed = |lab: &mut Lab, store| !lab.claims(store).is_empty();
        assert!(claimed(&mut lab, leader), "it notices nothing");
        let [a, b] = lab.followers(leader);
        both |= claimed(&mut lab, a) || claimed(&mut lab, b);
        let call = lab.open(leader);
        lab.update(call, 60);
        let target = lab.target(leader, region);
        lab.wait(call, &[target]);
        assert!(lab.waits(call)[0].1.is_ok(), "and confirms waits");
    }
    assert!(both, "another one was elected");
    lab.join(leader);
    lab.run_ms(1_000);
    assert!(lab.claims(leader).is_empty());
}

#[test]
fn s13_5_an_awake_leader_that_is_cut_off_notices() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.propose(leader, region, Command::Put);
    lab.run_ms(10);
    lab.cut_off(leader);
    lab.run_ms(1_200);
    assert!(lab.claims(leader).is_empty());
}

#[test]
fn s13_7_a_joint_configuration_at_rest_is_not_pending() {
    let mut lab = Lab::new(1);
    assert!(lab.cluster.begin_new_store());
    assert!(lab.cluster.begin_joint(false));
    lab.run_ms(500);
    let (region, leader) = lab.a_region();
    for store in 1..=3 {
        lab.lease(store, 60);
    }
    assert!(!pending(&mut lab, leader, region));
    let roles: Vec<PeerRole> = lab
        .region(leader, region)
        .peers
        .iter()
        .map(|p| p.role)
        .collect();
    assert!(roles.contains(&PeerRole::IncomingVoter));
    assert!(roles.contains(&PeerRole::DemotingVoter));
    lab.cluster.leave_joint(region, 0);
    lab.run_ms(500);
    assert!(
        lab.region(leader, region)
            .peers
            .iter()
            .any(|p| p.role == PeerRole::IncomingVoter)
    );
}

#[test]
fn s13_8_looking_wakes_nobody() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    lab.claims(leader);
    let call = lab.lease(leader, 60);
    let target = lab.target(leader, region);
    lab.wait(call, &[target]);
    assert!(!lab.peer(leader, region).armed.tick);
    assert!(!lab.peer(leader, region).armed.election);
    let _ = PeerTimer::Tick;
}
