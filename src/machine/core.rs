use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::jitter::Jitter;
use super::normal::{Normalizer, blank_error, blank_failure};
use super::policy::{Place, Reaction, reaction};
use super::{Config, Effect, Notice, RequestId};
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::progress::{FinishReport, PhaseName, PrepareReport, ReleaseState, Work};
use crate::region::{Store, StoreId};
use crate::time::Timestamp;

/// The most notices kept for a caller that does not ask for them.
const NOTICES_MAX: usize = 1024;
/// How long nothing has to move before it is told what is waited for.
const QUIET: Duration = Duration::from_secs(10);

/// What all phases share: the way out, the numbers, the time, and what is
/// remembered over attempts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) started_at: Timestamp,
    pub(super) now: Timestamp,
    next_number: u64,
    effects: VecDeque<Effect>,
    notices: VecDeque<Notice>,
    jitter: Jitter,
    pub(super) attempt: u32,
    pub(super) prepare_deadline: Timestamp,
    stop: Option<Stop>,
    /// Stores to which this run has sent a lease before: what is in force there
    /// may be our own.
    leased_before: BTreeSet<StoreId>,
    pub(super) foreign: BTreeSet<StoreId>,
    /// Stores of which an earlier attempt could not say that they were released,
    /// with the latest end of their lease.
    pub(super) leftovers: BTreeMap<StoreId, Timestamp>,
    /// Streams of the last attempt that were given up before their end was read.
    pub(super) abandoned: BTreeMap<RequestId, Store>,
    /// The last failure of each store, with the address that was used.
    pub(super) store_failures: BTreeMap<StoreId, (String, Failure)>,
    pub(super) pd_failure: Option<Failure>,
    pub(super) ignored: u64,
    pub(super) work: Work,
    /// When each phase of this attempt began.
    phases: Vec<(PhaseName, Timestamp)>,
    last_move: Timestamp,
    last_report: Timestamp,
    /// When the first lease of the present attempt was handed out.
    pub(super) suspended_at: Option<Timestamp>,
    pub(super) prepared: Option<Box<PrepareReport>>,
    pub(super) finished: Option<Box<FinishReport>>,
}

/// Why the present phase has to end early.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stop {
    /// Doubt: end the attempt and begin another one.
    Retry(Error),
    /// End the run without a hold, or lose the hold.
    Fail(Error),
    /// The owner wants out.
    Cancel,
    /// The owner has its snapshots.
    Finish,
}

/// By how much a short backoff begins below the ordinary one.
const SHORT: u32 = 32;

impl Core {
    pub(super) fn new(config: Config, now: Timestamp) -> Self {
        let jitter = Jitter::new(config.seed);
        let prepare_deadline = now + config.prepare_timeout;
        Self {
            config,
            started_at: now,
            now,
            next_number: 1,
            effects: VecDeque::new(),
            notices: VecDeque::new(),
            jitter,
            attempt: 1,
            prepare_deadline,
            stop: None,
            leased_before: BTreeSet::new(),
            foreign: BTreeSet::new(),
            leftovers: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            store_failures: BTreeMap::new(),
            pd_failure: None,
            ignored: 0,
            work: Work::default(),
            phases: Vec::new(),
            last_move: now,
            last_report: now,
            suspended_at: None,
            prepared: None,
            finished: None,
        }
    }

    /// Returns a number that was never used before.
    pub(super) fn number(&mut self) -> RequestId {
        let number = RequestId(self.next_number);
        self.next_number += 1;
        number
    }

    /// Sets the number that is handed out next.
    pub(super) const fn set_next_number(&mut self, next: RequestId) {
        self.next_number = next.0;
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            config: _,
            started_at,
            now,
            next_number: _,
            effects,
            notices,
            jitter,
            attempt: _,
            prepare_deadline,
            stop: _,
            leased_before: _,
            foreign: _,
            leftovers,
            abandoned,
            store_failures,
            pd_failure,
            ignored,
            work,
            phases,
            last_move,
            last_report,
            suspended_at,
            prepared,
            finished,
        } = self;
        *work = Work::default();
        phases.clear();
        for effect in effects {
            to.effect(effect);
        }
        notices.clear();
        jitter.switch_off();
        leftovers.retain(|_, until| !to.is_over(*until));
        for until in leftovers.values_mut() {
            to.instant(until);
        }
        to.keys(abandoned);
        for (_, failure) in store_failures.values_mut() {
            blank_failure(failure);
        }
        pd_failure.iter_mut().for_each(blank_failure);
        *ignored = 0;
        for at in [started_at, last_move, last_report]
            .into_iter()
            .chain(suspended_at)
        {
            to.forget(at);
        }
        prepared
            .iter_mut()
            .for_each(|report| blank_prepared(report));
        finished
            .iter_mut()
            .for_each(|report| blank_finished(report, to));
        to.instant(prepare_deadline);
        to.instant(now);
    }

    /// Returns a mark: every number handed out before is smaller, every later
    /// one is not.
    pub(super) const fn mark(&self) -> RequestId {
        RequestId(self.next_number)
    }

    pub(super) fn emit(&mut self, effect: Effect) {
        match &effect {
            Effect::WaitApply { regions, .. } => self.work.waits += regions.len() as u64,
            Effect::LeaderRead { regions, .. } => self.work.reads += regions.len() as u64,
            Effect::ListClaims { .. } => self.work.listings += 1,
            Effect::ScanRegions { .. } => self.work.scans += 1,
            _ => {}
        }
        self.effects.push_back(effect);
    }

    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Drops the questions that nobody has carried out yet: once the stores are
    /// to be released they would be asked for nothing, and a store that was taken
    /// over is to be left alone.
    pub(super) fn drop_unsent_questions(&mut self) {
        self.effects.retain(|effect| {
            !matches!(
                effect,
                Effect::WaitApply { .. }
                    | Effect::LeaderRead { .. }
                    | Effect::ListClaims { .. }
                    | Effect::ScanRegions { .. }
            )
        });
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Asks for the end of the phase. The first reason counts, but what is
    /// final outranks doubt.
    pub(super) fn stop(&mut self, stop: Stop) {
        let outranked = match (&self.stop, &stop) {
            (None, _) => true,
            (Some(Stop::Retry(_)), Stop::Retry(_)) => false,
            (Some(Stop::Retry(_)), _) => true,
            (Some(_), _) => false,
        };
        if outranked {
            self.stop = Some(stop);
        }
    }

    pub(super) fn take_stop(&mut self) -> Option<Stop> {
        self.stop.take()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns the backoff after `tries` failures in a row, with jitter.
    pub(super) fn backoff(&mut self, tries: u32) -> Duration {
        let mut pause = Duration::ZERO;
        for _ in 0..tries.max(1) {
            pause = self.longer_pause(pause, false);
            if pause >= self.config.backoff_max {
                break;
            }
        }
        self.spread(pause)
    }

    /// Returns the pause after one more failure. A short one, where a change is under way that is mostly over
    /// in milliseconds, begins far below the ordinary one.
    pub(super) fn longer_pause(&self, last: Duration, is_short: bool) -> Duration {
        let least = if is_short {
            self.config.backoff_min / SHORT
        } else {
            self.config.backoff_min
        };
        longer(last).max(least).min(self.config.backoff_max)
    }

    /// Returns a pause with jitter.
    pub(super) fn spread(&mut self, pause: Duration) -> Duration {
        self.jitter.spread(pause)
    }

    /// Counts an answer that came too late or fitted nothing.
    pub(super) fn ignore(&mut self) {
        self.ignored = self.ignored.saturating_add(1);
    }

    /// Notes that a phase begins.
    pub(super) fn note_phase(&mut self, phase: PhaseName) {
        if phase == PhaseName::Connect {
            self.phases.clear();
        }
        self.phases.push((phase, self.now));
    }

    /// Returns how long each phase of this attempt took that is over.
    pub(super) fn phase_times(&self) -> Vec<(PhaseName, Duration)> {
        let ends = self.phases.iter().skip(1).map(|(_, begin)| *begin);
        self.phases
            .iter()
            .zip(ends.chain([self.now]))
            .map(|((phase, begin), end)| (*phase, end.saturating_duration_since(*begin)))
            .collect()
    }

    /// Notes that something moved on.
    pub(super) fn note_move(&mut self) {
        self.last_move = self.now;
    }

    /// Returns when it is time to tell what is waited for.
    pub(super) fn report_due(&self) -> Timestamp {
        self.last_move.max(self.last_report) + QUIET
    }

    pub(super) fn note_report(&mut self) {
        self.last_report = self.now;
    }

    /// Notes that a store gets a lease. Returns whether it is the first one of
    /// this run.
    pub(super) fn note_leased(&mut self, store_id: StoreId) -> bool {
        self.leased_before.insert(store_id)
    }

    /// Remembers which stores an attempt leaves suspended.
    pub(super) fn note_released(&mut self, states: BTreeMap<StoreId, ReleaseState>) {
        for (id, state) in states {
            match state {
                ReleaseState::Unknown { until } | ReleaseState::LeftToOther { until } => {
                    let latest = self.leftovers.entry(id).or_insert(until);
                    *latest = until.max(*latest);
                }
                _ => {
                    self.leftovers.remove(&id);
                }
            }
        }
    }

    /// Judges the failure of a call to a store (`Place::Call`) or of its stream
    /// and stops the phase where trying again cannot help. Returns whether the
    /// caller may try again.
    pub(super) fn judge(&mut self, store: &Store, failure: &Failure, place: Place) -> bool {
        self.store_failures
            .insert(store.id, (store.address.clone(), failure.clone()));
        let stop = match reaction(failure.kind, place) {
            Reaction::Retry => return true,
            Reaction::Doubt => Stop::Retry(store_error(
                ErrorKind::StreamLost,
                store,
                &format!("the prepare stream ended: {failure}"),
                failure,
            )),
            Reaction::LeaseLost => Stop::Retry(store_error(
                ErrorKind::LeaseLost,
                store,
                &format!("no lease is in force any more: {failure}"),
                failure,
            )),
            Reaction::Superseded => Stop::Fail(store_error(
                ErrorKind::Superseded,
                store,
                &format!(
                    "another client opened a prepare stream there and took over ({failure}); make sure that only one tool prepares this cluster"
                ),
                failure,
            )),
            Reaction::Permanent(kind) => Stop::Fail(store_error(
                kind,
                store,
                &permanent_text(kind, store, failure),
                failure,
            )),
        };
        self.stop(stop);
        false
    }

    /// Takes in the end of a stream that was given up: that somebody took it is
    /// final, however late that is known (rule R5).
    pub(super) fn judge_abandoned(&mut self, stream: RequestId, reason: &Failure) {
        match self.abandoned.remove(&stream) {
            Some(store) if reason.kind == FailureKind::Superseded => {
                self.judge(&store, reason, Place::Leased);
            }
            _ => self.ignore(),
        }
    }

    /// Judges the failure of a call to PD. Returns whether it may be tried
    /// again.
    pub(super) fn judge_pd(&mut self, failure: &Failure) -> bool {
        self.pd_failure = Some(failure.clone());
        match reaction(failure.kind, Place::Call) {
            Reaction::Permanent(kind) => {
                let error = Error::new(kind, format!("PD cannot be used: {failure}"))
                    .with_source(failure.clone());
                self.stop(Stop::Fail(error));
                false
            }
            _ => true,
        }
    }
}

/// A pause grows by a quarter each time, so that what is waited for is noticed
/// soon in proportion to how long it took.
pub(super) fn longer(pause: Duration) -> Duration {
    pause + (pause / 4).max(Duration::from_micros(1))
}

/// Leaves of a report what was held, without when.
fn blank_prepared(report: &mut PrepareReport) {
    report.prepare_time = Duration::ZERO;
    for at in [
        &mut report.suspended_at,
        &mut report.held_at,
        &mut report.valid_until,
    ] {
        *at = Timestamp::ZERO;
    }
    report.phases.clear();
    report.work = Work::default();
    report.slowest_regions.clear();
    report.slowest_stores.clear();
}

/// Leaves of a report what became of the leases.
fn blank_finished(report: &mut FinishReport, to: &mut Normalizer) {
    report.prepare_time = None;
    report.suspended_time = None;
    report.error.iter_mut().for_each(blank_error);
    to.instant(&mut report.closed_at);
    for (_, state) in &mut report.stores {
        if let ReleaseState::Unknown { until } | ReleaseState::LeftToOther { until } = state {
            to.instant(until);
        }
    }
}

/// Returns an error about a store: its id, its address, what happened.
pub(super) fn store_error(kind: ErrorKind, store: &Store, what: &str, source: &Failure) -> Error {
    Error::new(
        kind,
        format!("store {} at {}: {what}", store.id, store.address),
    )
    .with_store(store.id)
    .with_source(source.clone())
}

fn permanent_text(kind: ErrorKind, store: &Store, failure: &Failure) -> String {
    match kind {
        ErrorKind::Unsupported => {
            let version = if store.version.is_empty() {
                "unknown"
            } else {
                &store.version
            };
            format!(
                "version {version} does not support snapshot backup ({failure}); it needs TiKV 6.5, 7.1 or 7.5 in a late patch release, or later, with the ordinary raftstore engine"
            )
        }
        ErrorKind::Tls => {
            format!("TLS failed: {failure}; check the CA, the certificate and the key")
        }
        ErrorKind::Unauthenticated => format!("it refuses our identity: {failure}"),
        ErrorKind::WrongService => format!("what answers there is not that store: {failure}"),
        _ => failure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    fn core() -> Core {
        Core::new(Config::default(), Timestamp::from_micros(7))
    }

    fn doubt(words: &str) -> Stop {
        Stop::Retry(Error::new(ErrorKind::StreamLost, words))
    }

    #[test]
    fn numbers_grow_and_marks_part_them() {
        let mut core = core();
        let (first, second) = (core.number(), core.number());
        let mark = core.mark();
        assert!(first < second && second < mark && core.number() == mark);
    }

    #[test]
    fn the_first_reason_counts_but_what_is_final_outranks_doubt() {
        for last in [Stop::Cancel, Stop::Finish, doubt("other")] {
            let mut core = core();
            assert!(!core.is_stopping());
            core.stop(doubt("first"));
            core.stop(last.clone());
            core.stop(Stop::Cancel);
            let expected = match last {
                Stop::Retry(_) => Stop::Cancel,
                other => other,
            };
            assert!(core.is_stopping());
            assert_eq!(core.take_stop(), Some(expected));
            assert_eq!(core.take_stop(), None);
        }
        let mut core = core();
        core.stop(Stop::Finish);
        core.stop(doubt("late"));
        assert_eq!(core.take_stop(), Some(Stop::Finish));
    }

    #[test]
    fn backoffs_grow_by_a_quarter_up_to_the_longest() {
        let mut core = core();
        let (least, most) = (core.config.backoff_min, core.config.backoff_max);
        for (tries, full) in [
            (0, least),
            (1, least),
            (2, least * 5 / 4),
            (3, least * 25 / 16),
            (19, most),
            (u32::MAX, most),
        ] {
            for _ in 0..50 {
                let pause = core.backoff(tries);
                assert!(pause >= full / 2 && pause <= full, "{tries}: {pause:?}");
            }
        }
    }

    #[test]
    fn questions_that_nobody_has_carried_out_are_dropped_and_nothing_else() {
        let mut core = core();
        let listed = Effect::ListStores {
            request: RequestId(1),
        };
        core.emit(Effect::WaitApply {
            stream: RequestId(2),
            store_id: StoreId(3),
            regions: Vec::new(),
        });
        core.emit(listed.clone());
        core.drop_unsent_questions();
        assert_eq!(core.poll_effect(), Some(listed));
        assert_eq!(core.poll_effect(), None);
    }

    #[test]
    fn what_ends_a_run_says_where_to_look() {
        let store = Store {
            version: "5.0.1".to_owned(),
            ..Store::default()
        };
        let failure = Failure::new(FailureKind::Other, "words");
        for (kind, hint) in [
            (ErrorKind::Unsupported, "version 5.0.1 does not support"),
            (ErrorKind::Tls, "check the CA"),
            (ErrorKind::Unauthenticated, "refuses our identity"),
            (ErrorKind::WrongService, "is not that store"),
            (ErrorKind::Superseded, "words"),
        ] {
            let text = permanent_text(kind, &store, &failure);
            assert!(text.contains(hint) && text.contains("words"), "{text}");
        }
        let text = permanent_text(ErrorKind::Unsupported, &Store::default(), &failure);
        assert!(text.contains("version unknown"), "{text}");
    }

    #[test]
    fn the_oldest_notices_give_way() {
        let mut core = core();
        for _ in 0..=NOTICES_MAX {
            core.notify(Notice::HoldHalfway);
        }
        core.notify(Notice::ForeignLease {
            store_id: StoreId(3),
        });
        let notices: Vec<_> = std::iter::from_fn(|| core.poll_notice()).collect();
        assert_eq!(notices.len(), NOTICES_MAX);
        assert!(matches!(notices.last(), Some(Notice::ForeignLease { .. })));
    }

    #[test]
    fn a_store_stays_left_over_until_it_is_released() {
        let at = |secs: u64| Timestamp::from_micros(secs * 1_000_000);
        let unknown = |secs| ReleaseState::Unknown { until: at(secs) };
        let mut core = core();
        let mut end_with = |one, two| {
            core.note_released(BTreeMap::from([(StoreId(1), one), (StoreId(2), two)]));
            core.leftovers.clone()
        };
        let left = end_with(unknown(50), ReleaseState::LeftToOther { until: at(60) });
        assert_eq!(left.into_values().collect::<Vec<_>>(), [at(50), at(60)]);
        let left = end_with(unknown(40), unknown(70));
        assert_eq!(left.into_values().collect::<Vec<_>>(), [at(50), at(70)]);
        let left = end_with(ReleaseState::Released, ReleaseState::ReleasedAfterLapse);
        assert!(left.is_empty());
    }
}
