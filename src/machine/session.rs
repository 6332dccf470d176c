use std::collections::BTreeMap;
use std::time::Duration;

use super::core::{Core, Stop, store_error};
use super::lease::{Lease, LeaseAnswer};
use super::normal::{Normalizer, blank_failure};
use super::policy::Place;
use super::timer::{Timer, Timers};
use super::{Effect, ForeignLease, Notice, RequestId};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::region::{Store, StoreId};
use crate::time::Timestamp;

/// The open streams of an attempt and the leases that are held over them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Session {
    pub(super) stores: BTreeMap<StoreId, StoreBook>,
    by_stream: BTreeMap<RequestId, StoreId>,
    by_lease: BTreeMap<RequestId, StoreId>,
    /// The next deadline of any lease, as long as no lease has changed since it
    /// was found: each input asks for it, and few are about a lease.
    next: Option<Option<(Timestamp, Timer)>>,
}

/// One store's stream and lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct StoreBook {
    pub(super) store: Store,
    pub(super) stream: RequestId,
    pub(super) lease: Lease,
    /// Whether the lease to be answered first is the first of this run.
    pub(super) first_of_run: bool,
    /// How the stream ended, once it has.
    pub(super) ended: Option<Failure>,
}

impl StoreBook {
    /// Returns whether the store's lease has to be left alone, since it is
    /// another's as well.
    pub(super) fn refused(&self, core: &Core) -> bool {
        core.config.foreign_lease == ForeignLease::Refuse && core.foreign.contains(&self.store.id)
    }
}

impl Session {
    /// Adds a store whose stream is open.
    pub(super) fn add(&mut self, store: Store, stream: RequestId) {
        self.next = None;
        self.by_stream.insert(stream, store.id);
        self.stores.insert(
            store.id,
            StoreBook {
                store,
                stream,
                lease: Lease::default(),
                first_of_run: false,
                ended: None,
            },
        );
    }

    /// Returns the store of a present stream.
    pub(super) fn store_of(&self, stream: RequestId) -> Option<StoreId> {
        self.by_stream.get(&stream).copied()
    }

    pub(super) fn book_of_stream(&mut self, stream: RequestId) -> Option<&mut StoreBook> {
        let id = self.by_stream.get(&stream)?;
        self.stores.get_mut(id)
    }

    /// Hands out an `UpdateLease` to every store.
    pub(super) fn renew_all(&mut self, core: &mut Core) {
        let ids: Vec<_> = self.stores.keys().copied().collect();
        for id in ids {
            self.renew(core, id);
        }
    }

    fn renew(&mut self, core: &mut Core, id: StoreId) {
        self.next = None;
        let Some(book) = self.stores.get_mut(&id) else {
            return;
        };
        let request = core.number();
        // Noted before it is handed out: from here on the store may hold it.
        if !book.lease.may_be_held() {
            book.first_of_run = core.note_leased(id);
            core.suspended_at.get_or_insert(core.now);
        }
        if book.lease.is_late(&core.config, core.now) {
            core.notify(Notice::LateRenewal { store_id: id });
        }
        book.lease.note_sent(request, core.now);
        self.by_lease.insert(request, id);
        core.emit(Effect::UpdateLease {
            request,
            stream: book.stream,
            store_id: id,
            seconds: core.config.lease.as_secs(),
        });
    }

    /// Takes in the answer to an `UpdateLease`.
    pub(super) fn handle_lease(&mut self, core: &mut Core, request: RequestId, valid: bool) {
        self.next = None;
        let Some(id) = self.by_lease.remove(&request) else {
            core.ignore();
            return;
        };
        let Some(book) = self.stores.get_mut(&id) else {
            core.ignore();
            return;
        };
        match book.lease.note_answer(request, valid, core.now) {
            None => core.ignore(),
            Some(LeaseAnswer::First { foreign }) => {
                core.note_move();
                if foreign && book.first_of_run {
                    core.foreign.insert(id);
                    core.notify(Notice::ForeignLease { store_id: id });
                }
            }
            Some(LeaseAnswer::Renewed) => {}
            Some(LeaseAnswer::Lapsed) => {
                let failure = Failure::new(
                    FailureKind::LeaseLost,
                    "the renewal was answered 'not valid'",
                );
                core.stop(Stop::Retry(store_error(
                    ErrorKind::LeaseLost,
                    &book.store,
                    "the lease had lapsed when its renewal arrived, so the store was not suspended throughout",
                    &failure,
                )));
            }
            Some(LeaseAnswer::OutOfOrder) => {
                let failure = Failure::new(FailureKind::Malformed, "lease answers out of order");
                core.stop(Stop::Retry(store_error(
                    ErrorKind::LeaseLost,
                    &book.store,
                    "it answered lease requests out of order, so the lease cannot be trusted",
                    &failure,
                )));
            }
        }
    }

    /// Takes in the end of a stream. Returns whether it was a present one.
    pub(super) fn handle_end(&mut self, core: &mut Core, stream: RequestId, reason: Failure) {
        let Some(book) = self.book_of_stream(stream) else {
            core.ignore();
            return;
        };
        if book.ended.is_some() {
            core.ignore();
            return;
        }
        book.ended = Some(reason.clone());
        let store = book.store.clone();
        if core.judge(&store, &reason, Place::Leased) {
            // The table lets no failure of a leased stream pass.
            core.stop(Stop::Retry(store_error(
                ErrorKind::StreamLost,
                &store,
                "the prepare stream ended",
                &reason,
            )));
        }
    }

    /// Returns whether every store has acknowledged its first lease.
    pub(super) fn all_acknowledged(&self) -> bool {
        self.stores
            .values()
            .all(|book| book.lease.is_acknowledged())
    }

    /// Refuses, once all first answers are there, if another's lease was found
    /// and the configuration says so.
    pub(super) fn check_foreign(&self, core: &mut Core) {
        let addresses: BTreeMap<_, _> = self
            .stores
            .values()
            .map(|book| (book.store.id, book.store.address.as_str()))
            .collect();
        if let Some(error) = foreign_error(core, &addresses) {
            core.stop(Stop::Fail(error));
        }
    }

    /// Returns whether every store answered 'valid' to a renewal with the number
    /// `mark` or a later one.
    pub(super) fn all_renewed_since(&self, mark: RequestId) -> bool {
        self.stores
            .values()
            .all(|book| book.lease.is_renewed_since(mark))
    }

    /// Returns the earliest end of trust over all stores.
    pub(super) fn trusted_until(&self, core: &Core) -> Option<Timestamp> {
        self.stores
            .values()
            .filter_map(|book| book.lease.trusted_until(&core.config))
            .min()
    }

    /// Takes new addresses from a store list.
    pub(super) fn update_addresses(&mut self, stores: &[Store]) {
        for store in stores {
            if let Some(book) = self.stores.get_mut(&store.id) {
                book.store = store.clone();
            }
        }
    }

    /// Lets time pass: ends trust, then renews what is due.
    pub(super) fn expire(&mut self, core: &mut Core) {
        let next = self.next_deadline(core);
        self.next = Some(next);
        if next.is_none_or(|(at, _)| at > core.now) {
            return;
        }
        let mut due = Vec::new();
        for (id, book) in &self.stores {
            if let Some(until) = book.lease.trusted_until(&core.config)
                && until <= core.now
            {
                core.stop(Stop::Retry(expired(book, core.config.lease)));
                return;
            }
            if let Some(deadline) = book.lease.first_deadline(core.config.call_timeout)
                && deadline <= core.now
            {
                core.stop(Stop::Retry(first_unanswered(
                    book,
                    core.config.call_timeout,
                )));
                return;
            }
            if book
                .lease
                .renewal_due(&core.config)
                .is_some_and(|due| due <= core.now)
            {
                due.push(*id);
            }
        }
        for id in due {
            self.renew(core, id);
        }
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            stores,
            by_stream,
            by_lease,
            next,
        } = self;
        *next = None;
        for book in stores.values_mut() {
            let StoreBook {
                store: _,
                stream,
                lease,
                first_of_run: _,
                ended,
            } = book;
            to.number(stream);
            lease.normalize(to);
            if let Some(failure) = ended {
                blank_failure(failure);
            }
        }
        to.keys(by_stream);
        to.keys(by_lease);
    }

    /// Names the next deadline.
    pub(super) fn timers(&self, core: &Core, timers: &mut Timers) {
        if let Some((at, timer)) = self.next_deadline(core) {
            timers.add(at, timer);
        }
    }

    fn next_deadline(&self, core: &Core) -> Option<(Timestamp, Timer)> {
        self.next.unwrap_or_else(|| self.find_next_deadline(core))
    }

    fn find_next_deadline(&self, core: &Core) -> Option<(Timestamp, Timer)> {
        let mut timers = Timers::default();
        for (id, book) in &self.stores {
            timers.add_some(book.lease.trusted_until(&core.config), Timer::LeaseEnd(*id));
            timers.add_some(
                book.lease.first_deadline(core.config.call_timeout),
                Timer::FirstLease(*id),
            );
            timers.add_some(book.lease.renewal_due(&core.config), Timer::Renewal(*id));
        }
        timers.next()
    }

    #[cfg(feature = "arbitrary")]
    pub(super) const fn forget_next_deadline(&mut self) {
        self.next = None;
    }

    /// Checks that no lease has changed unnoticed.
    pub(super) fn check(&self, core: &Core) -> Result<(), String> {
        if self.next_deadline(core) != self.find_next_deadline(core) {
            return Err("the next deadline of the leases is out of date (R3)".to_owned());
        }
        Ok(())
    }
}

/// Returns the error for leases of somebody else's that were found, if the
/// configuration says to refuse them.
pub(super) fn foreign_error(core: &Core, addresses: &BTreeMap<StoreId, &str>) -> Option<Error> {
    if core.config.foreign_lease != ForeignLease::Refuse {
        return None;
    }
    let first = core.foreign.first()?;
    let names: Vec<_> = core
        .foreign
        .iter()
        .map(|id| match addresses.get(id) {
            Some(address) => format!("store {id} at {address}"),
            None => format!("store {id}"),
        })
        .collect();
    let error = Error::new(
        ErrorKind::ForeignLease,
        format!(
            "already leased by somebody else: {}; another backup may be running. Their leases were left alone as far as that was known in time",
            names.join(", ")
        ),
    );
    Some(error.with_store(*first))
}

fn expired(book: &StoreBook, lease: Duration) -> Error {
    let failure = Failure::new(FailureKind::Timeout, "renewals unanswered");
    store_error(
        ErrorKind::LeaseLost,
        &book.store,
        &format!(
            "its lease of {lease:?} could not be renewed in time, so it can no longer be trusted"
        ),
        &failure,
    )
}

fn first_unanswered(book: &StoreBook, timeout: Duration) -> Error {
    let failure = Failure::new(FailureKind::Timeout, "first lease unanswered");
    store_error(
        ErrorKind::LeaseLost,
        &book.store,
        &format!("did not answer its first lease within {timeout:?}"),
        &failure,
    )
}
