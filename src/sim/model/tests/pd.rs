use std::time::Duration;

use super::Lab;
use crate::range::KeyRange;
use crate::region::{ScannedRegion, StoreId, StoreState};
use crate::sim::fault::{FaultKind, FaultPlan};
use crate::sim::model::node::Life;
use crate::sim::model::{Answer, Code, Request};

fn scan(lab: &mut Lab, range: KeyRange, limit: u32) -> Vec<ScannedRegion> {
    let call = lab.ask(Request::ScanRegions { range, limit });
    lab.run_ms(5);
    match lab.take(call).as_slice() {
        [Answer::Regions(regions)] => regions.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_tile_the_key_space() {
    let mut lab = Lab::new(50);
    let mut from = KeyRange::whole();
    let mut seen = 0;
    loop {
        let page = scan(&mut lab, from.clone(), 7);
        assert!(page.len() <= 7);
        assert_eq!(page[0].region.range.start(), from.start());
        seen += page.len();
        let last = &page[page.len() - 1].region.range;
        match last.end().as_key() {
            None => break,
            Some(end) => from = KeyRange::new(end.clone(), from.end().clone()).unwrap(),
        }
    }
    assert_eq!(seen, 50);
}

#[test]
fn pd_hears_of_a_split_a_little_later() {
    let mut lab = Lab::new(1);
    let (region, leader) = lab.a_region();
    assert!(lab.split(leader, region));
    assert_eq!(scan(&mut lab, KeyRange::whole(), 10).len(), 1);
    lab.run_ms(2_000);
    let regions = scan(&mut lab, KeyRange::whole(), 10);
    assert_eq!(regions.len(), 2);
    assert!(regions.iter().all(|region| region.leader.is_some()));
}

#[test]
fn p19_after_a_restart_pd_knows_no_leaders_for_a_while() {
    let mut lab = Lab::new(5);
    assert!(lab.cluster.begin_pd(FaultKind::PdRestart));
    let range = KeyRange::whole();
    let call = lab.ask(Request::ScanRegions { range, limit: 1 });
    lab.run_ms(5);
    assert_eq!(lab.ended(call).code, Code::Unavailable);
    lab.cluster.pd.down_until = lab.now;
    assert!(
        scan(&mut lab, KeyRange::whole(), 10)
            .iter()
            .all(|region| region.leader.is_none())
    );
    lab.cluster.report_leaders(Duration::from_millis(10));
    lab.run_ms(20);
    assert!(
        scan(&mut lab, KeyRange::whole(), 10)
            .iter()
            .all(|region| region.leader.is_some())
    );
}

#[test]
fn p21_hidden_regions_leave_gaps() {
    let mut lab = Lab::new(5);
    let (region, _) = lab.a_region();
    let until = lab.now + Duration::from_secs(5);
    lab.cluster.pd.hide(region, until, false);
    assert_eq!(scan(&mut lab, KeyRange::whole(), 10).len(), 4);
    lab.run_ms(6_000);
    assert_eq!(scan(&mut lab, KeyRange::whole(), 10).len(), 5);
}

#[test]
fn all_stores_are_listed_also_those_that_are_down() {
    let mut lab = Lab::new(1);
    lab.run_ms(1_000);
    lab.cluster.set_life(StoreId(2), Life::Down);
    lab.run_ms(60_000);
    let call = lab.ask(Request::ListStores);
    lab.run_ms(5);
    let answers = lab.take(call);
    let [Answer::Stores(stores)] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(stores.len(), 3);
    assert!(stores.iter().all(|store| store.state == StoreState::Up));
    let behind = stores[0].last_heartbeat_ns - stores[1].last_heartbeat_ns;
    assert_eq!(behind / 1_000_000_000, 60);
}

#[test]
fn a_new_store_is_listed_and_empty() {
    let mut lab = Lab::new(1);
    assert!(lab.cluster.begin_new_store());
    let call = lab.ask(Request::ListStores);
    lab.run_ms(5);
    let answers = lab.take(call);
    let [Answer::Stores(stores)] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    let new = stores[3].id;
    assert!(lab.claims(new.0).is_empty());
}

#[test]
fn regions_at_rest_cost_nothing() {
    let mut lab = Lab::with_plan(200, FaultPlan::none());
    lab.cluster.plan.timing.pd_refresh = Duration::from_secs(1_000_000);
    lab.run_ms(100);
    let mut events = 0;
    while lab
        .cluster
        .poll_timeout()
        .is_some_and(|at| at.as_micros() < 3_600_000_000)
    {
        lab.now = lab.cluster.poll_timeout().unwrap();
        lab.cluster.handle_timeout(lab.now);
        events += 1;
    }
    // The look at all leaders that was due, and what each of them tells.
    assert!(events <= 201, "{events}");
}
