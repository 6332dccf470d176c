//! Drives the machine by hand: no runtime, no network, no clock.
//!
//! Whoever has an event loop of their own, or checks models, or fuzzes, does
//! this. The contract: hand in one input, drain the effects, ask for the next
//! deadline; repeat until there is an outcome.
//!
//! Here one store with two regions answers everything at once, and time jumps
//! from deadline to deadline.
//!
//! ```text
//! cargo run --no-default-features --example drive_machine
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use snapshot_prepare::error::{Failure, FailureKind};
use snapshot_prepare::machine::{Config, Effect, Event, Machine, Outcome};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionId, ScannedRegion, Store,
    StoreId, WaitAnswer,
};
use snapshot_prepare::time::Timestamp;

const STORE: StoreId = StoreId(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut now = Timestamp::ZERO;
    let mut machine = Machine::new(Config::default(), now)?;
    let mut store = FakeStore::default();
    let mut events = VecDeque::new();
    let mut held_since = None;
    let mut phase = None;

    while machine.outcome().is_none() {
        // Drain the effects. A real driver starts a call or writes to a stream.
        while let Some(effect) = machine.poll_effect() {
            store.carry_out(effect, &mut events);
        }
        if phase.replace(machine.phase()) != Some(machine.phase()) {
            println!("{now} {}", machine.phase());
        }
        if machine.phase() == PhaseName::Hold {
            let since = *held_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= Duration::from_secs(300) {
                events.push_back(Event::FinishRequested);
            }
        }
        // One input: what happened, or that time has passed.
        if let Some(event) = events.pop_front() {
            machine.handle_event(event, now);
        } else if let Some(deadline) = machine.poll_timeout() {
            now = now.max(deadline);
            machine.handle_timeout(now);
        } else {
            return Err("nothing to do, and nothing to wait for".into());
        }
    }
    match machine.outcome() {
        Some(Outcome::Finished) => println!("the snapshots fit together"),
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

/// One store that leads two regions and always has a lease when asked again.
#[derive(Default)]
struct FakeStore {
    is_leased: bool,
}

impl FakeStore {
    /// Does what the machine wants and notes what happened.
    fn carry_out(&mut self, effect: Effect, events: &mut VecDeque<Event>) {
        match effect {
            Effect::ListStores { request } => events.push_back(Event::StoresListed {
                request,
                stores: vec![Store {
                    id: STORE,
                    address: "127.0.0.1:20160".to_owned(),
                    ..Store::default()
                }],
            }),
            Effect::OpenStream { stream, .. } => events.push_back(Event::StreamOpened { stream }),
            Effect::UpdateLease { request, .. } => events.push_back(Event::LeaseUpdated {
                request,
                last_lease_is_valid: std::mem::replace(&mut self.is_leased, true),
            }),
            Effect::Finish {
                request, stream, ..
            } => {
                events.push_back(Event::LeaseUpdated {
                    request,
                    last_lease_is_valid: std::mem::replace(&mut self.is_leased, false),
                });
                events.push_back(Event::StreamEnded {
                    stream,
                    reason: Failure::new(FailureKind::Finished, "finished"),
                });
            }
            Effect::ListClaims { request, .. } => events.push_back(Event::RegionsClaimed {
                request,
                claims: regions()
                    .map(|region| Claim {
                        region,
                        has_pending_admin: false,
                    })
                    .collect(),
                done: true,
            }),
            Effect::WaitApply {
                stream, regions, ..
            } => events.push_back(Event::WaitApplyDone {
                stream,
                answers: regions
                    .into_iter()
                    .map(|target| WaitAnswer {
                        target: Some(target),
                        result: Ok(()),
                    })
                    .collect(),
            }),
            Effect::LeaderRead {
                request, regions, ..
            } => events.push_back(Event::LeaderReadDone {
                request,
                answers: regions
                    .into_iter()
                    .map(|target| ReadAnswer {
                        region_id: target.region_id,
                        epoch: target.epoch,
                        result: Ok(()),
                    })
                    .collect(),
            }),
            Effect::ScanRegions { request, range, .. } => events.push_back(Event::RegionsScanned {
                request,
                regions: regions()
                    .filter(|region| region.range.overlaps(&range))
                    .map(|region| ScannedRegion {
                        region,
                        leader: Some(STORE),
                    })
                    .collect(),
            }),
            Effect::CloseStream { .. } => {}
            // Effects may be added; one that is not known here is not answered,
            // and the machine deals with that.
            _ => {}
        }
    }
}

fn regions() -> impl Iterator<Item = Region> {
    [(1, "", "m"), (2, "m", "")]
        .into_iter()
        .filter_map(|(id, start, end)| {
            Some(Region {
                id: RegionId(id),
                range: KeyRange::from_wire(start, end)?,
                epoch: RegionEpoch {
                    conf_ver: 1,
                    version: 2,
                },
                peers: vec![Peer {
                    id: PeerId(id + 100),
                    store_id: STORE,
                    role: PeerRole::Voter,
                }],
            })
        })
}
