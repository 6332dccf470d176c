use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use super::core::{Core, Stop, store_error};
use super::normal::Normalizer;
use super::policy::Place;
use super::session::Session;
use super::shelf::Shelf;
use super::timer::{Timer, Timers};
use super::{Effect, RequestId};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::region::{Claim, Region, Store, StoreId};
use crate::time::Timestamp;

/// The first phase: list the stores, probe each, then open a stream to each.
/// Nobody is suspended here (rule R1).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Connect {
    list: Call,
    listed: bool,
    stores: BTreeMap<StoreId, Dial>,
    /// Stores that regions have voters on but that were not in the list; each
    /// leads to one more list.
    strangers: BTreeSet<StoreId>,
}

/// How far one store is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Dial {
    store: Store,
    probe: Call,
    probed: bool,
    shelf: Shelf,
    stream: DialStream,
    tries: u32,
    /// When to try again after a failure.
    retry_at: Option<Timestamp>,
    /// Since when a store list is needed before the next try, for a fresh
    /// address.
    needs_list: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum DialStream {
    Closed,
    Dialing { stream: RequestId, since: Timestamp },
    Settling { stream: RequestId, until: Timestamp },
    Open { stream: RequestId },
}

impl DialStream {
    const fn stream(self) -> Option<RequestId> {
        match self {
            Self::Closed => None,
            Self::Dialing { stream, .. }
            | Self::Settling { stream, .. }
            | Self::Open { stream } => Some(stream),
        }
    }
}

impl Dial {
    fn new(store: Store) -> Self {
        Self {
            store,
            probe: Call::default(),
            probed: false,
            shelf: Shelf::default(),
            stream: DialStream::Closed,
            tries: 0,
            retry_at: None,
            needs_list: None,
        }
    }

    const fn may_be_tried(&self) -> bool {
        self.retry_at.is_none() && self.needs_list.is_none()
    }

    fn fail(&mut self, core: &mut Core) {
        self.tries = self.tries.saturating_add(1);
        self.retry_at = Some(core.now + core.backoff(self.tries));
    }

    fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            store: _,
            probe,
            probed: _,
            shelf,
            stream,
            tries,
            retry_at,
            needs_list,
        } = self;
        probe.normalize(to);
        shelf.normalize(to);
        *tries = to.tries(*tries);
        match stream {
            DialStream::Closed => {}
            DialStream::Dialing { stream, since: at }
            | DialStream::Settling { stream, until: at } => {
                to.number(stream);
                to.instant(at);
            }
            DialStream::Open { stream } => to.number(stream),
        }
        for at in [retry_at, needs_list].into_iter().flatten() {
            to.instant(at);
        }
    }

    /// Closes whatever stream there is.
    fn close(&mut self, core: &mut Core) {
        if let Some(stream) = self.stream.stream() {
            core.emit(Effect::CloseStream {
                stream,
                store_id: self.store.id,
            });
        }
        self.stream = DialStream::Closed;
    }
}

impl Connect {
    /// Begins at `start`, after the backoff between attempts.
    pub(super) fn new(start: Timestamp) -> Self {
        let mut list = Call::default();
        list.start_at(start);
        Self {
            list,
            ..Self::default()
        }
    }

    pub(super) fn handle_stores(
        &mut self,
        core: &mut Core,
        request: RequestId,
        stores: Vec<Store>,
    ) {
        if !self.list.is(request) {
            core.ignore();
            return;
        }
        let sent = self.list.sent().unwrap_or(core.now);
        let present: BTreeMap<_, _> = stores
            .into_iter()
            .filter(|store| store.takes_part() && !store.id.is_none())
            .map(|store| (store.id, store))
            .collect();
        if let Some(flaw) = flaw_of(&present) {
            core.pd_failure = Some(Failure::new(FailureKind::Other, flaw));
            self.list.fail(core);
            return;
        }
        // A list that brings nothing new is no progress: without that a store
        // that cannot be dialled would keep everything quiet for ever.
        let is_news = !self.listed || !self.stores.keys().eq(present.keys());
        if is_news {
            core.note_move();
        }
        core.pd_failure = None;
        self.list.finish();
        self.listed = true;
        self.merge_list(core, sent, present);
        self.step(core);
    }

    fn merge_list(&mut self, core: &mut Core, sent: Timestamp, present: BTreeMap<StoreId, Store>) {
        self.stores.retain(|id, dial| {
            let stays = present.contains_key(id);
            if !stays {
                dial.close(core);
            }
            stays
        });
        for (id, store) in present {
            let dial = self
                .stores
                .entry(id)
                .or_insert_with(|| Dial::new(store.clone()));
            dial.store = store;
            if dial.needs_list.is_some_and(|since| since <= sent) {
                dial.needs_list = None;
            }
        }
    }

    pub(super) fn handle_claims(
        &mut self,
        core: &mut Core,
        request: RequestId,
        claims: &[Claim],
        done: bool,
    ) {
        let Some(dial) = self.stores.values_mut().find(|dial| dial.probe.is(request)) else {
            core.ignore();
            return;
        };
        dial.probe.note_progress(core.now);
        core.note_move();
        for claim in claims {
            let Some(peer) = claim.region.peer_on(dial.store.id) else {
                core.stop(Stop::Fail(wrong_store(&dial.store, &claim.region)));
                return;
            };
            if claim.region.range.overlaps(&core.config.target) {
                dial.shelf.collect(claim, peer.id);
            }
            for voter in claim
                .region
                .peers
                .iter()
                .filter(|peer| peer.role.is_voter())
            {
                self.strangers.insert(voter.store_id);
            }
        }
        if done {
            dial.shelf.seal();
            dial.probe.finish();
            dial.probed = true;
            self.step(core);
        }
    }

    pub(super) fn handle_failed(&mut self, core: &mut Core, request: RequestId, failure: &Failure) {
        if self.list.is(request) {
            if core.judge_pd(failure) {
                self.list.fail(core);
            }
            return;
        }
        let Some(dial) = self.stores.values_mut().find(|dial| dial.probe.is(request)) else {
            core.ignore();
            return;
        };
        if core.judge(&dial.store, failure, Place::Call) {
            dial.probe = Call::default();
            dial.shelf = Shelf::default();
            dial.fail(core);
        }
    }

    pub(super) fn handle_opened(&mut self, core: &mut Core, stream: RequestId) {
        let until = core.now + core.config.settle;
        let found = self.stores.values_mut().find(
            |dial| matches!(dial.stream, DialStream::Dialing { stream: id, .. } if id == stream),
        );
        match found {
            Some(dial) => {
                dial.stream = DialStream::Settling { stream, until };
                // With no time to settle the stream is open at once.
                expire_dial(core, dial);
            }
            None => core.ignore(),
        }
    }

    pub(super) fn handle_end(&mut self, core: &mut Core, stream: RequestId, reason: &Failure) {
        let Some(dial) = self
            .stores
            .values_mut()
            .find(|dial| dial.stream.stream() == Some(stream))
        else {
            core.judge_abandoned(stream, reason);
            return;
        };
        dial.close(core);
        if core.judge(&dial.store, reason, Place::Dialing) {
            dial.fail(core);
        }
    }

    /// Starts whatever can be started now.
    fn step(&mut self, core: &mut Core) {
        if !self.listed || core.is_stopping() {
            return;
        }
        let needs_list = self.stores.values().any(|dial| dial.needs_list.is_some());
        if needs_list && self.list.is_idle() {
            self.start_list(core);
        }
        for dial in self.stores.values_mut() {
            if !dial.probed && dial.probe.is_idle() && dial.may_be_tried() {
                dial.shelf = Shelf::default();
                let request = dial.probe.start(core);
                core.emit(Effect::ListClaims {
                    request,
                    store: dial.store.clone(),
                });
            }
        }
        // A stream takes a rival's stream away, so none is opened before it is
        // clear that every store can be worked with.
        if !self.stores.values().all(|dial| dial.probed) || self.look_for_strangers(core) {
            return;
        }
        for dial in self.stores.values_mut() {
            if dial.stream == DialStream::Closed && dial.may_be_tried() {
                let stream = core.number();
                dial.stream = DialStream::Dialing {
                    stream,
                    since: core.now,
                };
                // From here on what ends the old stream may be the new one.
                core.abandoned.retain(|_, store| store.id != dial.store.id);
                core.emit(Effect::OpenStream {
                    stream,
                    store: dial.store.clone(),
                });
            }
        }
    }

    /// Lists the stores once more for voters on stores that are not listed.
    fn look_for_strangers(&mut self, core: &mut Core) -> bool {
        let stores = &self.stores;
        self.strangers.retain(|id| !stores.contains_key(id));
        if !self.strangers.is_empty() {
            self.strangers.clear();
            if self.list.is_idle() {
                self.start_list(core);
            }
        }
        self.list.is_waiting()
    }

    fn start_list(&mut self, core: &mut Core) {
        let request = self.list.start(core);
        core.emit(Effect::ListStores { request });
    }

    pub(super) fn expire(&mut self, core: &mut Core) {
        self.expire_list(core);
        for dial in self.stores.values_mut() {
            expire_dial(core, dial);
            if dial.retry_at.is_some_and(|at| at <= core.now) {
                dial.retry_at = None;
                dial.needs_list = Some(core.now);
            }
        }
        self.step(core);
    }

    fn expire_list(&mut self, core: &mut Core) {
        if self.list.is_overdue(core.now, core.config.call_timeout) {
            core.pd_failure = Some(Failure::new(
                FailureKind::Timeout,
                format!(
                    "PD did not list its stores within {:?}",
                    core.config.call_timeout
                ),
            ));
            self.list.fail(core);
        }
        if self.list.is_due(core.now) {
            self.start_list(core);
        }
    }

    pub(super) fn timers(&self, core: &Core, timers: &mut Timers) {
        timers.add_some(
            self.list.deadline(core.config.call_timeout),
            Timer::StoreList,
        );
        for (id, dial) in &self.stores {
            timers.add_some(
                dial.probe.deadline(core.config.call_timeout),
                Timer::Probe(*id),
            );
            timers.add_some(dial.retry_at, Timer::Dial(*id));
            match dial.stream {
                DialStream::Dialing { since, .. } => {
                    timers.add(since + core.config.call_timeout, Timer::Dial(*id));
                }
                DialStream::Settling { until, .. } => timers.add(until, Timer::Dial(*id)),
                DialStream::Closed | DialStream::Open { .. } => {}
            }
        }
    }

    /// Returns whether every store has an open stream.
    pub(super) fn is_complete(&self) -> bool {
        self.listed
            && !self.list.is_waiting()
            && self
                .stores
                .values()
                .all(|dial| dial.probed && matches!(dial.stream, DialStream::Open { .. }))
    }

    pub(super) fn store_count(&self) -> (usize, usize) {
        let open = self
            .stores
            .values()
            .filter(|dial| matches!(dial.stream, DialStream::Open { .. }))
            .count();
        (self.stores.len(), open)
    }

    pub(super) fn region_count(&self) -> Option<u64> {
        (self.listed && self.stores.values().all(|dial| dial.probed)).then(|| {
            self.stores
                .values()
                .map(|dial| dial.shelf.len() as u64)
                .sum()
        })
    }

    /// Turns the dialled stores into a session and the shelves of their claims.
    pub(super) fn into_session(self) -> (Session, BTreeMap<StoreId, Shelf>) {
        let mut session = Session::default();
        let mut shelves = BTreeMap::new();
        for (id, dial) in self.stores {
            if let DialStream::Open { stream } = dial.stream {
                session.add(dial.store, stream);
                shelves.insert(id, dial.shelf);
            }
        }
        (session, shelves)
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            list,
            listed: _,
            stores,
            strangers: _,
        } = self;
        list.normalize(to);
        for dial in stores.values_mut() {
            dial.normalize(to);
        }
    }

    /// Closes all that is open.
    pub(super) fn close_all(&mut self, core: &mut Core) {
        for dial in self.stores.values_mut() {
            dial.close(core);
        }
    }

    /// Returns what is missing, and the stores that keep us waiting, those with
    /// a failure first. While a store is not probed no stream is opened to any,
    /// so the others are not to blame.
    fn missing(&self, core: &Core) -> (&'static str, Vec<&Store>) {
        let unprobed = self.stores.values().any(|dial| !dial.probed);
        let mut missing: Vec<_> = self
            .stores
            .values()
            .filter(|dial| {
                if unprobed {
                    !dial.probed
                } else {
                    !matches!(dial.stream, DialStream::Open { .. })
                }
            })
            .map(|dial| &dial.store)
            .collect();
        missing.sort_by_key(|store| !core.store_failures.contains_key(&store.id));
        let what = if unprobed { "the listing" } else { "a stream" };
        (what, missing)
    }

    /// Returns the first store that keeps us waiting, for the error at the
    /// deadline; `None` when it is PD.
    pub(super) fn first_missing(&self, core: &Core) -> Option<&Store> {
        self.missing(core).1.first().copied()
    }

    /// Describes what is being waited for.
    pub(super) fn waiting_for(&self, core: &Core, limit: usize) -> String {
        if !self.listed {
            return match &core.pd_failure {
                Some(failure) => format!("the store list of PD ({failure})"),
                None => "the store list of PD".to_owned(),
            };
        }
        let (what, missing) = self.missing(core);
        let names: Vec<_> = missing
            .iter()
            .take(limit)
            .map(|store| {
                let cause = core
                    .store_failures
                    .get(&store.id)
                    .map_or(String::new(), |(_, failure)| format!(" ({failure})"));
                format!("store {} at {}{cause}", store.id, store.address)
            })
            .collect();
        format!(
            "{what} of {} of {} stores: {}{}",
            missing.len(),
            self.stores.len(),
            names.join(", "),
            if missing.len() > names.len() {
                ", …"
            } else {
                ""
            }
        )
    }
}

/// Returns why nothing can be done with a store list.
fn flaw_of(present: &BTreeMap<StoreId, Store>) -> Option<String> {
    if present.is_empty() {
        return Some("PD lists no TiKV store that is in use".to_owned());
    }
    // It is one process, of which one of them is a memory. A stream for each would
    // take the other's away.
    let mut ids = BTreeMap::new();
    present
        .values()
        .filter(|store| !store.address.is_empty())
        .find_map(|store| {
            let other = ids.insert(&store.address, store.id)?;
            Some(format!(
                "PD lists stores {other} and {} at one address, {}",
                store.id, store.address
            ))
        })
}

/// Ends what is overdue at one store, and lets its stream settle.
fn expire_dial(core: &mut Core, dial: &mut Dial) {
    if dial.probe.is_overdue(core.now, core.config.call_timeout) {
        let failure = timeout(core, "did not answer the listing of its regions");
        core.judge(&dial.store, &failure, Place::Call);
        dial.probe = Call::default();
        dial.shelf = Shelf::default();
        dial.fail(core);
    }
    match dial.stream {
        DialStream::Dialing { since, .. } if since + core.config.call_timeout <= core.now => {
            let failure = timeout(core, "could not be dialled");
            core.judge(&dial.store, &failure, Place::Dialing);
            dial.close(core);
            dial.fail(core);
        }
        DialStream::Settling { stream, until } if until <= core.now => {
            dial.stream = DialStream::Open { stream };
            dial.tries = 0;
            core.store_failures.remove(&dial.store.id);
            core.note_move();
        }
        _ => {}
    }
}

fn timeout(core: &Core, what: &str) -> Failure {
    Failure::new(
        FailureKind::Timeout,
        format!("{what} within {:?}", core.config.call_timeout),
    )
}

/// Returns the error for a claim without a peer on the store that made it.
pub(super) fn wrong_store(store: &Store, region: &Region) -> Error {
    let failure = Failure::new(
        FailureKind::WrongService,
        "a claim without a peer on the store",
    );
    store_error(
        ErrorKind::WrongService,
        store,
        &format!(
            "it claims region {}, which has no peer on store {}: another store answers at that address",
            region.id, store.id
        ),
        &failure,
    )
    .with_region(region.id)
}
