use std::collections::BTreeMap;

use super::core::Core;
use super::lease::{Lease, LeaseAnswer};
use super::normal::{Normalizer, blank_error};
use super::session::{Session, StoreBook, foreign_error};
use super::timer::{Timer, Timers};
use super::{Effect, Notice, Outcome, RequestId};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::progress::ReleaseState;
use crate::region::{Store, StoreId};
use crate::time::Timestamp;

/// Lifting the leases: the one path on which everything is cleaned up (rule
/// R16). It never dials.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Release {
    stores: BTreeMap<StoreId, Releasing>,
    pub(super) then: Then,
    /// When the last Finish was answered.
    last_answer: Option<Timestamp>,
}

/// What follows when all is released.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Then {
    /// Another attempt.
    Again(Error),
    /// The run ends without a hold.
    Failed(Error),
    /// The run ends with a hold that was lost.
    Lost(Error),
    /// The run ends because its owner wants out.
    Cancelled,
    /// The run ends with a hold that was kept; the answers decide whether that
    /// can be said.
    Verdict,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Releasing {
    address: String,
    stream: RequestId,
    lease: Lease,
    /// Whether the lease to be answered first is the first of this run.
    first_of_run: bool,
    finish: Option<RequestId>,
    /// Until when Finish may be answered and the stream end; `None` when there
    /// is nothing left to wait for.
    deadline: Option<Timestamp>,
    state: Option<ReleaseState>,
    /// The latest end of the lease, as far as that is known by now.
    until: Timestamp,
}

impl Release {
    /// Sends Finish wherever our lease may be in force.
    pub(super) fn begin(core: &mut Core, session: Session, then: Then) -> Self {
        core.drop_unsent_questions();
        let mut stores = BTreeMap::new();
        for (id, book) in session.stores {
            stores.insert(id, begin_store(core, id, book));
        }
        let mut release = Self {
            stores,
            then,
            last_answer: None,
        };
        release.check_foreign(core);
        release
    }

    /// Changes what follows, where that is more final than what was to follow.
    pub(super) fn upgrade(&mut self, then: Then) {
        if matches!(self.then, Then::Again(_)) {
            self.then = then;
        }
    }

    /// Takes in an answer to Finish, or to a renewal sent before it.
    pub(super) fn handle_lease(&mut self, core: &mut Core, request: RequestId, valid: bool) {
        for (id, store) in &mut self.stores {
            if store.finish == Some(request) && store.state.is_none() {
                // A lapse that a renewal repaired would make Finish say 'valid',
                // so each renewal sent before has to be answered, and well.
                let sound = valid && !store.lease.has_lapsed() && !store.lease.has_pending();
                store.state = Some(if sound {
                    ReleaseState::Released
                } else {
                    ReleaseState::ReleasedAfterLapse
                });
                self.last_answer = Some(core.now);
                core.note_move();
                return;
            }
            let Some(answer) = store.lease.note_answer(request, valid, core.now) else {
                continue;
            };
            store.until = store.lease.latest_end(&core.config, core.now);
            if store.first_of_run && answer == (LeaseAnswer::First { foreign: true }) {
                core.foreign.insert(*id);
                core.notify(Notice::ForeignLease { store_id: *id });
                self.check_foreign(core);
            }
            return;
        }
        core.ignore();
    }

    /// Another's lease that shows only now forbids another attempt just as well,
    /// if the configuration says so.
    fn check_foreign(&mut self, core: &Core) {
        let addresses = self
            .stores
            .iter()
            .map(|(id, store)| (*id, store.address.as_str()))
            .collect();
        if let Some(error) = foreign_error(core, &addresses) {
            self.upgrade(Then::Failed(error));
        }
    }

    /// Takes in the end of a stream.
    pub(super) fn handle_end(&mut self, core: &mut Core, stream: RequestId, reason: &Failure) {
        let found = self
            .stores
            .iter_mut()
            .find(|(_, store)| store.stream == stream && store.deadline.is_some());
        let Some((id, store)) = found else {
            core.ignore();
            return;
        };
        core.note_move();
        let superseded = reason.kind == FailureKind::Superseded;
        let error = Error::new(
            ErrorKind::Superseded,
            format!(
                "store {id} at {}: another client opened a prepare stream there and took over ({reason}); make sure that only one tool prepares this cluster",
                store.address
            ),
        )
        .with_store(*id)
        .with_source(reason.clone());
        store.close(core, *id);
        if superseded {
            self.upgrade(Then::Failed(error));
        }
    }

    /// Gives up on what is overdue.
    pub(super) fn expire(&mut self, core: &mut Core) {
        for (id, store) in &mut self.stores {
            if store.deadline.is_some_and(|deadline| deadline <= core.now) {
                let given_up = Store {
                    id: *id,
                    address: store.address.clone(),
                    ..Store::default()
                };
                core.abandoned.insert(store.stream, given_up);
                store.close(core, *id);
            }
        }
    }

    pub(super) fn timers(&self, timers: &mut Timers) {
        for (id, store) in &self.stores {
            timers.add_some(store.deadline, Timer::Finish(*id));
        }
    }

    /// Returns whether nothing is left to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.stores.values().all(|store| store.deadline.is_none())
    }

    /// Returns what became of each lease.
    pub(super) fn states(&self) -> BTreeMap<StoreId, ReleaseState> {
        self.stores
            .iter()
            .filter_map(|(id, store)| store.state.map(|state| (*id, state)))
            .collect()
    }

    pub(super) const fn last_answer(&self) -> Option<Timestamp> {
        self.last_answer
    }

    /// Returns the verdict on a hold that was kept until its owner asked for
    /// its end.
    pub(super) fn verdict(&self) -> Outcome {
        for (id, store) in &self.stores {
            let what = match store.state {
                Some(ReleaseState::Released) => continue,
                Some(ReleaseState::ReleasedAfterLapse) => {
                    "its lease was not in force any more when it was lifted"
                }
                _ => "it did not confirm that its lease was still in force",
            };
            return Outcome::HoldLost(
                Error::new(
                    ErrorKind::ReleaseUnconfirmed,
                    format!(
                        "store {id} at {}: {what}; discard the snapshots",
                        store.address
                    ),
                )
                .with_store(*id),
            );
        }
        Outcome::Finished
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            stores,
            then,
            last_answer,
        } = self;
        for store in stores.values_mut() {
            store.normalize(to);
        }
        then.normalize();
        if let Some(at) = last_answer {
            to.forget(at);
        }
    }

    /// Describes what is being waited for.
    pub(super) fn waiting_for(&self, limit: usize) -> String {
        let waiting: Vec<_> = self
            .stores
            .iter()
            .filter(|(_, store)| store.deadline.is_some())
            .map(|(id, store)| format!("store {id} at {}", store.address))
            .collect();
        let shown = waiting.len().min(limit);
        format!(
            "the release of {} stores: {}",
            waiting.len(),
            waiting[..shown].join(", ")
        )
    }

    pub(super) fn store_count(&self) -> usize {
        self.stores.len()
    }
}

impl Then {
    fn normalize(&mut self) {
        match self {
            Self::Again(error) | Self::Failed(error) | Self::Lost(error) => blank_error(error),
            Self::Cancelled | Self::Verdict => {}
        }
    }
}

impl Releasing {
    fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            address: _,
            stream,
            lease,
            first_of_run: _,
            finish,
            deadline,
            state,
            until,
        } = self;
        to.number(stream);
        lease.normalize(to);
        if let Some(request) = finish {
            to.number(request);
        }
        if let Some(at) = deadline {
            to.instant(at);
        }
        if let Some(ReleaseState::Unknown { until } | ReleaseState::LeftToOther { until }) = state {
            to.instant(until);
        }
        to.instant(until);
    }

    fn close(&mut self, core: &mut Core, id: StoreId) {
        core.emit(Effect::CloseStream {
            stream: self.stream,
            store_id: id,
        });
        self.deadline = None;
        if self.state.is_none() && self.lease.may_be_held() {
            // What is unanswered may have reached the store until now.
            self.until = self
                .until
                .max(self.lease.latest_end(&core.config, core.now));
            self.state = Some(ReleaseState::Unknown { until: self.until });
        }
    }
}

fn begin_store(core: &mut Core, id: StoreId, book: StoreBook) -> Releasing {
    let until = book.lease.latest_end(&core.config, core.now);
    let held = book.lease.may_be_held();
    let foreign = book.refused(core);
    let mut store = Releasing {
        address: book.store.address,
        stream: book.stream,
        lease: book.lease,
        first_of_run: book.first_of_run,
        finish: None,
        deadline: None,
        state: None,
        until,
    };
    if foreign {
        store.state = Some(ReleaseState::LeftToOther { until });
    }
    if book.ended.is_some() || !held || foreign {
        store.close(core, id);
        return store;
    }
    let request = core.number();
    store.finish = Some(request);
    store.deadline = Some(core.now + core.config.call_timeout);
    core.emit(Effect::Finish {
        request,
        stream: store.stream,
        store_id: id,
    });
    store
}
