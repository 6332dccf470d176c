//! The model against the protocol's tables; tests are named after the sections
//! of the observations of a real store.

mod claims;
mod faults;
mod judged;
mod judged_more;
mod leases;
mod pd;
mod reads;
mod streams;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use super::command::Command;
use super::peer::PeerNode;
use super::{Answer, CallId, Cluster, Request, Status, StreamReply};
use crate::cluster::StreamRequest;
use crate::region::{Claim, Region, RegionId, StoreId, WaitTarget};
use crate::sim::fault::FaultPlan;
use crate::sim::layout::Layout;
use crate::sim::model::{ModelRegionError, ReadRequest};
use crate::time::Timestamp;

/// A cluster of three stores with three voters per region, and its client.
struct Lab {
    cluster: Cluster,
    now: Timestamp,
    calls: u64,
    answers: Vec<(CallId, Answer)>,
}

impl Lab {
    fn new(regions: u32) -> Self {
        Self::with_plan(regions, FaultPlan::none())
    }

    fn with_plan(regions: u32, plan: FaultPlan) -> Self {
        let layout = Layout::generate(3, regions, 3, 11);
        let start = Timestamp::from_micros(5_000_000);
        Self {
            cluster: Cluster::new(&layout, plan, 3, start),
            now: start,
            calls: 0,
            answers: Vec::new(),
        }
    }

    fn run(&mut self, lasting: Duration) {
        let end = self.now + lasting;
        while let Some(at) = self.cluster.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.cluster.handle_timeout(self.now);
            while let Some(answer) = self.cluster.poll_answer() {
                self.answers.push(answer);
            }
        }
        self.now = end;
        self.cluster.handle_timeout(end);
    }

    fn run_ms(&mut self, millis: u64) {
        self.run(Duration::from_millis(millis));
    }

    fn ask(&mut self, request: Request) -> CallId {
        let call = CallId(self.calls);
        self.calls += 1;
        self.cluster.handle_request(call, request, self.now);
        call
    }

    fn send(&mut self, call: CallId, request: StreamRequest) {
        let request = Request::StreamSend(request);
        self.cluster.handle_request(call, request, self.now);
    }

    /// Takes what was answered to a call so far.
    fn take(&mut self, call: CallId) -> Vec<Answer> {
        let mut taken = Vec::new();
        self.answers.retain(|(of, answer)| {
            if *of == call {
                taken.push(answer.clone());
            }
            *of != call
        });
        taken
    }

    fn open(&mut self, store: u64) -> CallId {
        let store = StoreId(store);
        let call = self.ask(Request::OpenStream { store });
        self.run_ms(5);
        assert_eq!(self.take(call), [Answer::Opened]);
        call
    }

    /// Opens a stream and takes a lease.
    fn lease(&mut self, store: u64, seconds: u64) -> CallId {
        let call = self.open(store);
        assert!(!self.update(call, seconds));
        call
    }

    fn update(&mut self, call: CallId, seconds: u64) -> bool {
        self.send(call, StreamRequest::UpdateLease { seconds });
        self.run_ms(5);
        let answers = self.take(call);
        match answers.as_slice() {
            [
                Answer::Stream(StreamReply::LeaseUpdated {
                    last_lease_is_valid,
                }),
            ] => *last_lease_is_valid,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, call: CallId, regions: &[WaitTarget]) {
        let regions = regions.to_vec();
        self.send(call, StreamRequest::WaitApply { regions });
        self.run_ms(10);
    }

    /// Returns the results of waits answered so far.
    fn waits(&mut self, call: CallId) -> Vec<(WaitTarget, Result<(), ModelRegionError>)> {
        let answers = self.take(call).into_iter();
        answers
            .map(|answer| match answer {
                Answer::Stream(StreamReply::WaitApplyDone { target, result, .. }) => {
                    (target, result)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn ended(&mut self, call: CallId) -> Status {
        let answers = self.take(call);
        match answers.as_slice() {
            [Answer::End(status)] => status.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn claims(&mut self, store: u64) -> Vec<Claim> {
        let store = StoreId(store);
        let call = self.ask(Request::ListClaims { store });
        self.run_ms(20);
        let mut answers = self.take(call);
        assert_eq!(answers.pop(), Some(Answer::End(Status::ok())));
        answers
            .into_iter()
            .flat_map(|answer| match answer {
                Answer::Claims(claims) => claims,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn read_request(&self, store: u64, region: RegionId) -> ReadRequest {
        let peer = self.peer(store, region);
        ReadRequest {
            region_id: region,
            epoch: peer.region.epoch,
            peer_id: peer.id,
            peer_store: StoreId(store),
            ..ReadRequest::default()
        }
    }

    fn read(&mut self, store: u64, read: ReadRequest) -> CallId {
        let store = StoreId(store);
        self.ask(Request::LeaderRead { store, read })
    }

    fn read_result(&mut self, call: CallId) -> Option<Result<(), ModelRegionError>> {
        match self.take(call).as_slice() {
            [] => None,
            [Answer::Read(result)] => Some(result.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn peer(&self, store: u64, region: RegionId) -> &PeerNode {
        &self.cluster.stores[&StoreId(store)].peers[&region]
    }

    fn peer_mut(&mut self, store: u64, region: RegionId) -> &mut PeerNode {
        let node = self.cluster.stores.get_mut(&StoreId(store)).unwrap();
        node.peers.get_mut(&region).unwrap()
    }

    /// Returns a region and the store that leads it.
    fn a_region(&self) -> (RegionId, u64) {
        let at = self.cluster.leaders()[0];
        (at.region, at.store.0)
    }

    fn followers(&self, leader: u64) -> [u64; 2] {
        match leader {
            1 => [2, 3],
            2 => [1, 3],
            _ => [1, 2],
        }
    }

    fn region(&self, store: u64, region: RegionId) -> Arc<Region> {
        Arc::clone(&self.peer(store, region).region)
    }

    fn target(&self, store: u64, region: RegionId) -> WaitTarget {
        WaitTarget {
            region_id: region,
            epoch: self.peer(store, region).region.epoch,
        }
    }

    fn propose(&mut self, store: u64, region: RegionId, command: Command) -> bool {
        self.cluster.propose(StoreId(store), region, command)
    }

    fn split(&mut self, store: u64, region: RegionId) -> bool {
        let peer = self.peer(store, region).id;
        let at = super::event::PeerAddress {
            store: StoreId(store),
            region,
            peer,
        };
        let command = self.cluster.split_command(at).unwrap();
        self.propose(store, region, command)
    }

    /// Keeps what a leader proposes from its peers.
    fn hold(&mut self, store: u64, region: RegionId, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        self.peer_mut(store, region).hold_until = until;
    }

    fn cut_off(&mut self, store: u64) {
        self.cluster.net.cut_off(StoreId(store));
        self.cluster.network_changed(&[StoreId(store)], false);
    }

    fn join(&mut self, store: u64) {
        self.cluster.net.join(StoreId(store));
        self.cluster.network_changed(&[StoreId(store)], true);
    }
}
