use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::asking::Asking;
use super::core::longer;
use super::{Config, Effect, Machine, RequestId};
use crate::error::{Error, Failure};
use crate::time::Timestamp;

/// What [`Machine::normalize`] did to the numbers and the instants, so that
/// whoever keeps some of them can do the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renaming {
    numbers: BTreeMap<RequestId, RequestId>,
    was_now: Timestamp,
}

impl Renaming {
    /// Returns the new number of an effect; `None` for one that neither the
    /// machine nor the caller named.
    pub fn number(&self, old: RequestId) -> Option<RequestId> {
        self.numbers.get(&old).copied()
    }

    /// Returns the instant that is as far from [`Machine::NORMAL_NOW`] as `old`
    /// was from the machine's now.
    pub fn instant(&self, old: Timestamp) -> Timestamp {
        shifted(old, self.was_now)
    }
}

impl Machine {
    /// What a machine in normal form takes for now.
    pub const NORMAL_NOW: Timestamp = Timestamp::from_micros(1 << 50);

    /// Brings the machine into its normal form, so that two machines that will
    /// behave alike are equal: for model checkers, which have to know a state
    /// when they see it again.
    ///
    /// Instants are moved so that now is [`Machine::NORMAL_NOW`]; what lies more
    /// than `horizon` ahead counts as just that far. Numbers are renamed. What
    /// only reports and messages are made of is forgotten: counters, how long
    /// things took, the words of failures, and notices not yet polled. The
    /// jitter of the backoffs is switched off: from here on each lasts its full
    /// time.
    ///
    /// Apart from that the machine does from here on what it would have done:
    /// the same effects, at the same distances in time, under the new numbers.
    /// `others` are numbers that the machine may have forgotten and that the
    /// caller still knows, in an order of the caller's; they are renamed as
    /// well.
    pub fn normalize(
        &mut self,
        horizon: Duration,
        others: impl IntoIterator<Item = RequestId>,
    ) -> Renaming {
        let was_now = self.core.now;
        let mut collect = Normalizer::new(&self.core.config, was_now, horizon);
        self.visit(&mut collect);
        for number in others {
            collect.add(number, true);
        }
        let (mut rename, next) = collect.into_renaming();
        self.visit(&mut rename);
        self.core.set_next_number(next);
        Renaming {
            numbers: rename.numbers,
            was_now,
        }
    }

    fn visit(&mut self, to: &mut Normalizer) {
        self.phase.normalize(&self.core.config, to);
        self.core.normalize(to);
    }
}

fn shifted(at: Timestamp, was_now: Timestamp) -> Timestamp {
    if at >= was_now {
        Machine::NORMAL_NOW + at.saturating_duration_since(was_now)
    } else {
        Machine::NORMAL_NOW.saturating_sub(was_now.saturating_duration_since(at))
    }
}

/// Visits every part of a machine twice: first to collect the numbers, then to
/// change them, and the instants.
///
/// Numbers are compared in two ways: one in flight with the one of an answer,
/// and any with a mark, as earlier or later. So a normal form has to keep which
/// marks a number lies between, and need not keep more of the order: within
/// these bounds numbers are renamed in the order of the visit. Those of the reads
/// at a store are compared with each other, too, and are visited in their order.
#[derive(Debug)]
pub(super) struct Normalizer {
    was_now: Timestamp,
    horizon: Duration,
    /// From so many tries on the backoff grows no more.
    tries_max: u32,
    renames: bool,
    marks: BTreeSet<RequestId>,
    /// Numbers that are in flight no more.
    pasts: BTreeSet<RequestId>,
    /// The numbers in flight, each with its place in the order of the visit;
    /// `true` for those that the machine need not know.
    found: BTreeMap<RequestId, (bool, usize)>,
    numbers: BTreeMap<RequestId, RequestId>,
    renamed_marks: BTreeMap<RequestId, RequestId>,
}

impl Normalizer {
    fn new(config: &Config, was_now: Timestamp, horizon: Duration) -> Self {
        let mut tries_max = 1;
        let mut backoff = config.backoff_min;
        while backoff < config.backoff_max {
            backoff = longer(backoff);
            tries_max += 1;
        }
        Self {
            was_now,
            horizon,
            tries_max,
            renames: false,
            marks: BTreeSet::new(),
            pasts: BTreeSet::new(),
            found: BTreeMap::new(),
            numbers: BTreeMap::new(),
            renamed_marks: BTreeMap::new(),
        }
    }

    fn add(&mut self, number: RequestId, is_other: bool) {
        let place = self.found.len();
        self.found.entry(number).or_insert((is_other, place));
    }

    /// Gives each number a new one. Returns the first that is free.
    fn into_renaming(mut self) -> (Self, RequestId) {
        let mut order: Vec<_> = self
            .found
            .iter()
            .map(|(&number, &(is_other, place))| {
                let after = if is_other {
                    self.marks.len()
                } else {
                    self.marks.range(..=number).count()
                };
                (is_other, after, place, number)
            })
            .collect();
        order.sort_unstable();
        let mut next = RequestId(1);
        let mut done = 0;
        let marks: Vec<_> = self.marks.iter().copied().collect();
        for (_, after, _, number) in order {
            self.rename_marks(marks.get(done..after).unwrap_or_default(), &mut next);
            done = done.max(after);
            self.numbers.insert(number, next);
            next.0 += 1;
        }
        self.rename_marks(marks.get(done..).unwrap_or_default(), &mut next);
        self.renames = true;
        (self, next)
    }

    /// Renames marks between which there is no number in flight. Those that tell
    /// no numbers of the past apart become one.
    fn rename_marks(&mut self, marks: &[RequestId], next: &mut RequestId) {
        let mut last: Option<RequestId> = None;
        for &mark in marks {
            let apart = last.is_none_or(|last| self.pasts.range(last..mark).next().is_some());
            if apart {
                last = Some(mark);
                next.0 += 1;
            }
            self.renamed_marks.insert(mark, RequestId(next.0 - 1));
        }
    }

    /// A number that is in flight, or names a stream.
    pub(super) fn number(&mut self, number: &mut RequestId) {
        if !self.renames {
            self.add(*number, false);
        } else if let Some(new) = self.numbers.get(number) {
            *number = *new;
        }
    }

    /// A mark that numbers are compared with.
    pub(super) fn mark(&mut self, mark: &mut RequestId) {
        if !self.renames {
            self.marks.insert(*mark);
        } else if let Some(new) = self.renamed_marks.get(mark) {
            *mark = *new;
        }
    }

    /// A number of the past, which is still compared with marks.
    pub(super) fn past(&mut self, number: &mut RequestId) {
        if !self.renames {
            self.pasts.insert(*number);
        } else {
            let mark = self.marks.range(..=*number).next_back();
            *number = mark
                .and_then(|mark| self.renamed_marks.get(mark))
                .copied()
                .unwrap_or(RequestId(0));
        }
    }

    /// The numbers that things are filed under.
    pub(super) fn keys<V>(&mut self, map: &mut BTreeMap<RequestId, V>) {
        let old = std::mem::take(map);
        for (mut number, value) in old {
            self.number(&mut number);
            map.insert(number, value);
        }
    }

    /// An instant.
    pub(super) fn instant(&mut self, at: &mut Timestamp) {
        if self.renames {
            let latest = self.was_now + self.horizon;
            *at = shifted((*at).min(latest), self.was_now);
        }
    }

    /// An instant that only reports are made of.
    pub(super) fn forget(&mut self, at: &mut Timestamp) {
        if self.renames {
            *at = Machine::NORMAL_NOW;
        }
    }

    /// Returns whether `at` is too far ahead to be told apart from later ones.
    pub(super) fn is_far(&self, at: Timestamp) -> bool {
        at > self.was_now + self.horizon
    }

    /// Returns as many tries as still lead to the same backoffs.
    pub(super) fn tries(&self, tries: u32) -> u32 {
        tries.min(self.tries_max)
    }

    /// Returns whether `at` is over.
    pub(super) fn is_over(&self, at: Timestamp) -> bool {
        at <= self.was_now
    }

    /// The numbers of an effect that was not polled yet.
    pub(super) fn effect(&mut self, effect: &mut Effect) {
        match effect {
            Effect::ListStores { request }
            | Effect::ListClaims { request, .. }
            | Effect::LeaderRead { request, .. }
            | Effect::ScanRegions { request, .. } => self.number(request),
            Effect::OpenStream { stream, .. }
            | Effect::WaitApply { stream, .. }
            | Effect::CloseStream { stream, .. } => self.number(stream),
            Effect::UpdateLease {
                request, stream, ..
            }
            | Effect::Finish {
                request, stream, ..
            } => {
                self.number(request);
                self.number(stream);
            }
        }
    }
}

impl Asking {
    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            shelves,
            proven: _,
            retry,
            reads,
            listings,
            stragglers,
            round_pause: _,
            confirmed: _,
            last_proof,
            store_list,
            store_list_wanted,
            store_list_completed,
            slowest,
        } = self;
        reads.number(to);
        shelves.normalize(to);
        reads.normalize(to);
        retry.normalize(to);
        stragglers.normalize(to);
        listings.normalize(to);
        store_list.normalize(to);
        if *store_list_wanted <= *store_list_completed {
            *store_list_wanted = None;
        }
        for mark in [last_proof, store_list_wanted].into_iter().flatten() {
            to.mark(mark);
        }
        if let Some(number) = store_list_completed {
            to.past(number);
        }
        slowest.clear();
    }
}

/// Leaves of a failure only what decisions are made of.
pub(super) fn blank_failure(failure: &mut Failure) {
    failure.message.clear();
}

/// Leaves of an error only its kind and its store.
pub(super) fn blank_error(error: &mut Error) {
    let mut blank = Error::new(error.kind(), "");
    if let Some(store) = error.store_id() {
        blank = blank.with_store(store);
    }
    *error = blank;
}
