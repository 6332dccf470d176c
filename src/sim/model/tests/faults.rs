//! What each fault does that is not told by the tables of the protocol.

use std::time::Duration;

use super::Lab;
use crate::cluster::StreamRequest;
use crate::progress::PhaseName;
use crate::region::{RegionId, StoreId};
use crate::sim::fault::{FaultKind, FaultPlan, Timing};
use crate::sim::model::command::Command;
use crate::sim::model::node::FinishFault;
use crate::sim::model::strike::Strike;
use crate::sim::model::{Answer, CallId, Code, Request, StreamReply};

impl Lab {
    /// Lets a fault begin; returns whether it did.
    pub(super) fn begin(&mut self, kind: FaultKind) -> bool {
        let count = |lab: &Self| lab.cluster.strikes().values().sum::<u64>();
        let before = count(self);
        self.cluster.strike(Strike::Begin(kind));
        count(self) > before
    }

    /// Returns the store that leads a region in the newest term.
    fn leader(&self, region: RegionId) -> Option<(u64, u64)> {
        let peer = self.cluster.leader_of(region)?;
        Some((peer.store.0, peer.term))
    }

    fn finish(&mut self, call: CallId) -> Vec<Answer> {
        self.send(call, StreamRequest::Finish);
        self.run_ms(20);
        self.take(call)
    }
}

/// A lab in which a fault lasts for up to a minute.
fn long_lab(regions: u32) -> Lab {
    let plan = FaultPlan {
        longest: Duration::from_secs(60),
        ..FaultPlan::none()
    };
    Lab::with_plan(regions, plan)
}

#[test]
fn requests_never_overtake_the_opening_of_their_stream() {
    let timing = Timing {
        client_delay: Duration::from_millis(5),
        jitter_percent: 400,
        ..Timing::default()
    };
    let plan = FaultPlan {
        timing,
        ..FaultPlan::none()
    };
    let mut lab = Lab::with_plan(1, plan);
    for store in [1, 2, 3].repeat(20) {
        let store = StoreId(store);
        let call = lab.ask(Request::OpenStream { store });
        lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
        lab.send(call, StreamRequest::Finish);
        lab.run_ms(200);
        let answers = lab.take(call);
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert_eq!(answers[0], Answer::Opened);
        assert!(matches!(&answers[3], Answer::End(status) if status.code == Code::Ok));
    }
}

#[test]
fn late_messages_between_client_and_store_keep_their_order() {
    let mut lab = Lab::new(1);
    let call = lab.open(1);
    let far = lab.now + Duration::from_secs(600);
    lab.cluster
        .stores
        .get_mut(&StoreId(1))
        .unwrap()
        .client_delay = (far, 2_000_000);
    let mut late = false;
    for _ in 0..20 {
        lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
        lab.run_ms(5);
        late |= lab.take(call).is_empty();
        lab.run_ms(10_000);
    }
    assert!(late);
    lab.send(call, StreamRequest::UpdateLease { seconds: 60 });
    lab.send(call, StreamRequest::Finish);
    lab.run_ms(20_000);
    let answers = lab.take(call);
    assert!(
        matches!(
            answers.as_slice(),
            [.., Answer::Stream(_), Answer::Stream(_), Answer::End(_)]
        ),
        "{answers:?}"
    );
}

#[test]
fn late_messages_between_stores_put_off_what_is_committed() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    let far = lab.now + Duration::from_secs(600);
    for node in lab.cluster.stores.values_mut() {
        node.peer_delay = (far, 200_000);
    }
    assert!(lab.propose(leader, region, Command::Put));
    lab.run_ms(5);
    let peer = lab.peer(leader, region);
    assert!(peer.applied < peer.last_index());
    lab.run_ms(30_000);
    let peer = lab.peer(leader, region);
    assert_eq!(peer.applied, peer.last_index());
}

#[test]
fn a_late_finish_lifts_the_lease_of_the_next_client() {
    let mut lab = long_lab(1);
    assert!(lab.begin(FaultKind::LateFinish));
    lab.run_ms(5);
    let with_rival = |lab: &Lab| {
        let mut nodes = lab.cluster.stores.values();
        nodes.find(|node| node.stream.is_some()).unwrap().info.id.0
    };
    let store = with_rival(&lab);
    let call = lab.open(store);
    assert!(lab.update(call, 60), "the rival's lease is in force");
    lab.run_ms(11_000);
    assert!(!lab.update(call, 60), "nothing else tells of it");
    assert!(lab.update(call, 60));
}

#[test]
fn an_orphan_wait_makes_ours_a_duplicate_until_it_is_over() {
    let mut lab = long_lab(6);
    let streams = [1, 2, 3].map(|store| lab.lease(store, 3_600));
    assert!(lab.begin(FaultKind::OrphanWait));
    let waiting = |lab: &Lab| {
        let nodes = lab.cluster.stores.values();
        let mut peers = nodes.flat_map(|node| node.peers.values());
        peers
            .find(|peer| peer.wait.is_some())
            .map(|peer| (peer.store.0, peer.region.id))
    };
    let (store, region) = waiting(&lab).expect("somebody waits");
    let call = streams[(store - 1) as usize];
    let target = lab.target(store, region);
    lab.wait(call, &[target]);
    if let [(_, result)] = lab.waits(call).as_slice() {
        let error = result.clone().expect_err("is a duplicate");
        assert!(error.message.contains("Duplicated"), "{}", error.message);
    } else {
        panic!("one answer");
    }
    lab.run_ms(120_000);
    assert_eq!(waiting(&lab), None);
    lab.wait(call, &[target]);
    assert_eq!(lab.waits(call), [(target, Ok(()))]);
}

#[test]
fn a_stale_follower_answers_a_wait_at_once_and_refuses_the_read() {
    let mut lab = long_lab(1);
    let (region, old) = lab.a_region();
    let streams = [1, 2, 3].map(|store| lab.lease(store, 3_600));
    assert!(lab.begin(FaultKind::StaleFollower));
    let mut seen = false;
    for _ in 0..400 {
        lab.run_ms(20);
        let peer = lab.peer(old, region);
        if !peer.is_leader() && peer.vote.is_none() && peer.applied < peer.last_index() {
            seen = true;
            break;
        }
    }
    assert!(seen, "it follows and has something left to apply");
    let target = lab.target(old, region);
    lab.wait(streams[(old - 1) as usize], &[target]);
    assert_eq!(lab.waits(streams[(old - 1) as usize]), [(target, Ok(()))]);
    let read = lab.read_request(old, region);
    let call = lab.read(old, read);
    lab.run_ms(5);
    assert!(matches!(lab.read_result(call), Some(Err(_))));
}

#[test]
fn a_wait_at_a_leader_that_is_taken_out_succeeds() {
    let mut lab = long_lab(1);
    let (region, leader) = lab.a_region();
    let streams = [1, 2, 3].map(|store| lab.open(store));
    let call = streams[(leader - 1) as usize];
    let target = lab.target(leader, region);
    assert!(lab.begin(FaultKind::LeaderRemoved));
    for stream in streams {
        lab.send(stream, StreamRequest::UpdateLease { seconds: 3_600 });
    }
    lab.wait(call, &[target]);
    lab.run_ms(130_000);
    let answers = lab.take(call);
    let success = |answer: &Answer| {
        matches!(
            answer,
            Answer::Stream(StreamReply::WaitApplyDone { result: Ok(()), .. })
        )
    };
    assert_eq!(
        answers.iter().filter(|answer| success(answer)).count(),
        1,
        "{answers:?}"
    );
    let gone = &lab.cluster.stores[&StoreId(leader)].peers;
    assert!(!gone.contains_key(&region), "under the lease it stays out");
}

#[test]
fn two_stores_claim_a_region_whose_leader_is_cut_off() {
    let mut lab = long_lab(1);
    let (region, old) = lab.a_region();
    assert!(lab.begin(FaultKind::TwoClaims));
    lab.run_ms(1_900);
    let claims = |lab: &mut Lab, store| !lab.claims(store).is_empty();
    assert!(claims(&mut lab, old));
    let (new, _) = lab.leader(region).unwrap();
    assert_ne!(new, old);
    assert!(claims(&mut lab, new));
    lab.run_ms(70_000);
    assert!(!claims(&mut lab, old));
}

#[test]
fn a_leader_moves_away_and_comes_back() {
    let mut came_back = 0;
    for seed in 0..10 {
        let plan = FaultPlan::none();
        let layout = crate::sim::layout::Layout::generate(3, 1, 3, seed);
        let mut lab = long_lab(1);
        lab.cluster = crate::sim::model::Cluster::new(&layout, plan, seed, lab.now);
        let (region, first) = lab.a_region();
        let (_, term) = lab.leader(region).unwrap();
        assert!(lab.begin(FaultKind::LeaderReturns));
        let mut leaders = vec![(first, term)];
        for _ in 0..1_000 {
            lab.run_ms(10);
            if let Some(now) = lab.leader(region)
                && leaders.last() != Some(&now)
            {
                leaders.push(now);
            }
        }
        let stores: Vec<u64> = leaders.iter().map(|(store, _)| *store).collect();
        assert!(stores.len() > 1, "seed {seed}: {leaders:?}");
        came_back += u32::from(stores.iter().skip(2).any(|&store| store == first));
    }
    assert!(came_back >= 5, "{came_back} of 10");
}

#[test]
fn the_streams_of_a_store_that_crashed_are_silent_at_first() {
    let mut lab = Lab::new(1);
    let streams = [1, 2, 3].map(|store| lab.lease(store, 60));
    assert!(lab.begin(FaultKind::StoreCrash));
    let down = |lab: &Lab| {
        let mut nodes = lab.cluster.stores.values();
        nodes
            .find(|node| !node.raft_runs())
            .map(|node| node.info.id)
    };
    let store = down(&lab).expect("one is down");
    let call = streams[(store.0 - 1) as usize];
    lab.run_ms(5);
    assert!(lab.take(call).is_empty());
    lab.run_ms(14_000);
    assert_eq!(lab.ended(call).code, Code::Unavailable);
    assert_eq!(down(&lab), None);
    let now = lab.now;
    assert!(!lab.cluster.stores[&store].lease.is_suspended(now));
}

#[test]
fn a_finish_goes_wrong_in_every_way() {
    let valid = |valid| {
        Answer::Stream(StreamReply::LeaseUpdated {
            last_lease_is_valid: valid,
        })
    };
    let faulty = |fault| {
        let mut lab = Lab::new(1);
        let call = lab.lease(1, 60);
        lab.cluster
            .stores
            .get_mut(&StoreId(1))
            .unwrap()
            .finish_fault = Some(fault);
        let answers = lab.finish(call);
        let now = lab.now;
        let suspended = lab.cluster.stores[&StoreId(1)].lease.is_suspended(now);
        (lab, call, answers, suspended)
    };
    let late = FinishFault::Late(Duration::from_secs(3));
    let (mut lab, call, answers, suspended) = faulty(late);
    assert!(answers.is_empty() && suspended);
    lab.run_ms(3_000);
    assert_eq!(lab.take(call).first(), Some(&valid(true)));
    let (_, _, answers, suspended) = faulty(FinishFault::SaysLapsed);
    assert!(answers.first() == Some(&valid(false)) && !suspended);
    let (_, _, answers, suspended) = faulty(FinishFault::OtherMessage);
    assert!(matches!(
        answers.as_slice(),
        [
            Answer::Stream(StreamReply::WaitApplyDone { .. }),
            Answer::End(_)
        ]
    ));
    assert!(!suspended);
    let (_, _, answers, suspended) = faulty(FinishFault::NoAnswer);
    assert!(matches!(answers.as_slice(), [Answer::End(_)]) && !suspended);
    let (_, _, answers, suspended) = faulty(FinishFault::Silence);
    assert!(answers.is_empty() && !suspended);
}

#[test]
fn a_rival_that_comes_again_takes_the_stream_again() {
    let mut lab = Lab::new(1);
    let mut taken = 0;
    assert!(lab.begin(FaultKind::RivalAgain));
    for _ in 0..60 {
        let call = lab.ask(Request::OpenStream { store: StoreId(1) });
        lab.run_ms(1_000);
        taken += u32::from(lab.take(call).len() > 1);
    }
    assert!(taken >= 1, "the stream was never taken away");
}

#[test]
fn an_aimed_fault_waits_for_its_phase() {
    let plan = FaultPlan {
        stop_after: Duration::from_secs(60),
        ..FaultPlan::none()
    };
    let plan = plan
        .aimed(FaultKind::PdRestart, PhaseName::Hold, 2)
        .aimed(FaultKind::ClientPause, PhaseName::Hold, 1)
        .aimed(FaultKind::Write, PhaseName::Connect, 1);
    let mut lab = Lab::with_plan(1, plan);
    lab.run_ms(5_000);
    assert!(lab.cluster.strikes().is_empty(), "no client has come yet");
    lab.ask(Request::ListStores);
    lab.run_ms(5_000);
    let struck = |lab: &Lab| lab.cluster.strikes().clone();
    assert_eq!(struck(&lab).len(), 1);
    assert_eq!(struck(&lab)[&(FaultKind::Write, PhaseName::Connect)], 1);
    lab.cluster.note_phase(PhaseName::WaitApply);
    lab.run_ms(5_000);
    assert_eq!(struck(&lab).len(), 1);
    assert_eq!(lab.cluster.poll_pause(), None);
    lab.cluster.note_phase(PhaseName::Hold);
    lab.run_ms(5_000);
    assert_eq!(struck(&lab)[&(FaultKind::PdRestart, PhaseName::Hold)], 2);
    assert!(lab.cluster.poll_pause().is_some());
    assert_eq!(lab.cluster.poll_pause(), None);
}

#[test]
fn a_region_grows_from_one_peer_to_two_through_an_election() {
    let layout = crate::sim::layout::Layout::generate(2, 1, 1, 5);
    let mut lab = Lab::new(1);
    lab.cluster = crate::sim::model::Cluster::new(&layout, FaultPlan::none(), 5, lab.now);
    let (region, leader) = lab.a_region();
    let at = lab.cluster.leaders()[0];
    let command = lab.cluster.conf_command(at).unwrap();
    let now = lab.now;
    assert!(lab.propose(leader, region, command));
    // It steps down before the new peer has heard of it.
    lab.peer_mut(leader, region).deaf_until = now + Duration::from_secs(3);
    lab.run_ms(3_100);
    assert_eq!(lab.leader(region), None);
    lab.cluster.strike(Strike::Heard(region));
    lab.run_ms(10_000);
    assert!(lab.leader(region).is_some());
    let peers = &lab.region(leader, region).peers;
    assert_eq!(peers.len(), 2);
    let other = peers.iter().find(|peer| peer.store_id.0 != leader).unwrap();
    assert_eq!(lab.peer(other.store_id.0, region).id, other.id);
}
