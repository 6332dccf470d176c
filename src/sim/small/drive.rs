//! The way between the machine and the cluster: inputs in, effects out.

use std::collections::BTreeMap;

use super::bounds::{Bounds, Fault};
use super::call::{Ask, Call};
use super::state::{HORIZON, Small, positions};
use super::store::{Down, Stream, Target, Up};
use crate::machine::{Effect, Event, Machine, RequestId};
use crate::progress::PhaseName;
use crate::region::{RegionId, StoreId, WaitTarget};

const DIALS: &str = "dials";
const FINISH: &str = "finish where due";

impl Small {
    /// Hands an event to the machine, or lets time pass there, and carries out
    /// what it wants.
    pub(super) fn input(&mut self, event: Option<Event>) {
        let before = self.machine.phase();
        let now = self.now();
        match event {
            Some(event) => self.machine.handle_event(event, now),
            None => self.machine.handle_timeout(now),
        }
        let phase = self.machine.phase();
        if before != phase && phase != PhaseName::Verify {
            // What was asked in another phase is waited for no more.
            self.calls.iter_mut().for_each(|call| call.is_old = true);
        }
        self.drain();
        self.judge_input(before);
    }

    /// Carries out what the machine wants.
    pub(super) fn drain(&mut self) {
        while self.machine.poll_notice().is_some() {}
        while let Some(effect) = self.machine.poll_effect() {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::ListStores { request } => self.call(request, Ask::Stores),
            Effect::ListClaims { request, store } => {
                self.call(request, Ask::Claims(index(store.id)));
            }
            Effect::ScanRegions {
                request,
                range,
                limit,
            } => {
                let (from, to) = positions(&range, self.end());
                self.call(request, Ask::Scan(from, to, limit));
            }
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                for read in regions {
                    let target = Target {
                        region: small(read.region_id),
                        version: read.epoch.version as u8,
                    };
                    self.call(request, Ask::Read(index(store.id), target));
                }
            }
            Effect::OpenStream { stream, store } => self.dial(stream, store.id),
            Effect::UpdateLease {
                request, stream, ..
            } => self.send(stream, Up::Lease(request)),
            Effect::WaitApply {
                stream, regions, ..
            } => self.send_waits(stream, &regions),
            Effect::Finish {
                request, stream, ..
            } => self.send(stream, Up::Finish(request)),
            Effect::CloseStream { stream, store_id } => self.close(stream, store_id),
        }
    }

    fn call(&mut self, number: RequestId, ask: Ask) {
        self.calls.push(Call {
            ask,
            reply: None,
            is_old: false,
            number,
        });
    }

    fn dial(&mut self, number: RequestId, store: StoreId) {
        let at = usize::from(index(store));
        if self.judge.is_superseded.get(at) == Some(&true) {
            let how = format!("store {store} is dialed again after another client took over");
            self.judge.break_rule("superseded is final", how);
        }
        if self.machine.phase() != PhaseName::Connect {
            let how = format!("store {store} is dialed in {}", self.machine.phase());
            self.judge.break_rule(DIALS, how);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.streams.push(Stream::new(number));
        }
    }

    /// Sends a request on a stream, which has to be open and not finished.
    fn send(&mut self, number: RequestId, up: Up) {
        let judge = &mut self.judge;
        let found = self
            .nodes
            .iter_mut()
            .find_map(|node| node.stream(number))
            .filter(|stream| !stream.is_closed);
        let Some(stream) = found else {
            judge.break_rule("streams", format!("{up:?} is sent on no stream"));
            return;
        };
        if stream.is_finished {
            judge.break_rule(FINISH, format!("{up:?} is sent after Finish"));
        }
        match up {
            Up::Lease(_) => stream.is_leased = true,
            Up::Finish(_) if !stream.is_leased => {
                judge.break_rule(FINISH, "Finish is sent without a lease".to_owned());
            }
            Up::Finish(_) => stream.is_finished = true,
            Up::Wait(_) => {}
        }
        // What is sent on a stream that has ended reaches nobody.
        if stream.state != super::store::StreamState::Ended {
            stream.up.push_back(up);
        }
    }

    fn send_waits(&mut self, number: RequestId, regions: &[WaitTarget]) {
        if let Some(at) = self.nodes.iter_mut().position(|node| {
            let stream = node.present();
            !stream.is_some_and(|stream| stream.is_acknowledged)
        }) {
            let how = format!(
                "a wait is sent although the first lease of store {} is not answered",
                at + 1
            );
            self.judge.break_rule("lease all before asking", how);
        }
        self.judge.has_waited = true;
        for region in regions {
            let target = Target {
                region: small(region.region_id),
                version: region.epoch.version as u8,
            };
            self.judge_twice(number, target.region);
            self.send(number, Up::Wait(target));
        }
    }

    /// At most one wait per region and store is in flight.
    fn judge_twice(&mut self, number: RequestId, region: u8) {
        let Some(node) = self
            .nodes
            .iter_mut()
            .find(|node| node.streams.iter().any(|stream| stream.number == number))
        else {
            return;
        };
        let waits = node
            .waits
            .iter()
            .any(|wait| wait.stream == Some(number) && wait.target.region == region);
        let queued = node.stream(number).is_some_and(|stream| {
            stream
                .up
                .iter()
                .any(|up| matches!(up, Up::Wait(target) if target.region == region))
                || stream
                    .down
                    .iter()
                    .any(|down| matches!(down, Down::Wait(target, _) if target.region == region))
        });
        if waits || queued {
            let how = format!("region {region} is asked for twice at once");
            self.judge.break_rule("bounded window", how);
        }
    }

    fn close(&mut self, number: RequestId, store: StoreId) {
        if let Some(node) = self.nodes.get_mut(usize::from(index(store))) {
            if let Some(stream) = node.stream(number) {
                if stream.is_leased && !stream.is_finished && !stream.has_ended {
                    let how = format!("the stream of store {store} is closed without a Finish");
                    self.judge.break_rule(FINISH, how);
                }
                stream.is_closed = true;
                stream.state = super::store::StreamState::Ended;
                stream.up.clear();
            }
            node.orphan_waits();
        }
    }

    /// Brings the state into its normal form: drops what can have no effect,
    /// puts the rest in order, and renames the numbers.
    pub(super) fn normalize(&mut self, bounds: &Bounds) {
        if !self.may(bounds, Fault::Late) {
            self.calls.retain(|call| !call.is_old);
        }
        let keeps_late = self.may(bounds, Fault::Late);
        for node in &mut self.nodes {
            node.streams
                .retain(|stream| !stream.is_closed || (keeps_late && !stream.down.is_empty()));
            node.waits
                .sort_by_key(|wait| (wait.target, wait.index, wait.stream));
        }
        self.groups.sort_by_key(|group| (group.from, group.id));
        self.calls.sort();
        let now = self.now();
        let renaming = self.machine.normalize(HORIZON, self.numbers());
        // What the machine has been told of is past.
        let paused = renaming.instant(now);
        self.paused = paused.saturating_duration_since(Machine::NORMAL_NOW);
        let rename = |number: &mut RequestId| {
            if let Some(new) = renaming.number(*number) {
                *number = new;
            }
        };
        for call in &mut self.calls {
            rename(&mut call.number);
        }
        for node in &mut self.nodes {
            for wait in &mut node.waits {
                if let Some(stream) = &mut wait.stream {
                    rename(stream);
                }
            }
            for stream in &mut node.streams {
                rename(&mut stream.number);
                for up in &mut stream.up {
                    if let Up::Lease(number) | Up::Finish(number) = up {
                        rename(number);
                    }
                }
                for down in &mut stream.down {
                    if let Down::Lease { request, .. } | Down::Finished { request, .. } = down {
                        rename(request);
                    }
                }
            }
        }
        self.calls.sort();
    }

    /// Returns all numbers that are on the way, in an order of our own.
    fn numbers(&self) -> Vec<RequestId> {
        let mut numbers: Vec<_> = self.calls.iter().map(|call| call.number).collect();
        for stream in self.nodes.iter().flat_map(|node| &node.streams) {
            numbers.push(stream.number);
            numbers.extend(stream.up.iter().filter_map(|up| match up {
                Up::Lease(number) | Up::Finish(number) => Some(*number),
                Up::Wait(_) => None,
            }));
            numbers.extend(stream.down.iter().filter_map(|down| match down {
                Down::Lease { request, .. } | Down::Finished { request, .. } => Some(*request),
                Down::Wait(..) | Down::End(_) => None,
            }));
        }
        numbers
    }

    /// Returns the present streams by store, counted from 1.
    pub(super) fn streams(&self) -> BTreeMap<u64, &Stream> {
        let present = self.nodes.iter().enumerate().filter_map(|(at, node)| {
            let stream = node.streams.iter().find(|stream| !stream.is_closed)?;
            Some((at as u64 + 1, stream))
        });
        present.collect()
    }
}

/// Returns the place of a store.
fn index(store: StoreId) -> u8 {
    (store.0 as u8).wrapping_sub(1)
}

fn small(region: RegionId) -> u8 {
    region.0 as u8
}
