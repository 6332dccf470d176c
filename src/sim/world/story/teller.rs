use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::words::{Group, Phrase, refusal, stores};
use super::{Line, Mark};
use crate::error::{Error, FailureKind};
use crate::machine::{Effect, Event, Notice, RequestId};
use crate::progress::{FinishReport, PhaseName};
use crate::region::{RegionError, RegionId, StoreId};
use crate::sim::fault::FaultKind;
use crate::time::Timestamp;

/// Steps that are further apart than this are not put together, save in the
/// hold, where hardly anything but renewals happens.
const TOGETHER: Duration = Duration::from_secs(1);

/// Tells a run while it goes on.
#[derive(Debug)]
pub(in crate::sim::world) struct Teller {
    start: Timestamp,
    reveals_keys: bool,
    phase: PhaseName,
    lines: Vec<Line>,
    /// What happened since the last line, similar steps together.
    open: Vec<(Timestamp, Timestamp, Group)>,
    calls: BTreeMap<RequestId, Call>,
    /// Streams with a lease.
    leased: BTreeSet<RequestId>,
    /// Whether what is open is to be a line of its own.
    is_alone: bool,
    strikes: BTreeMap<FaultKind, u64>,
    is_frozen: bool,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    store: Option<StoreId>,
    /// Of a lease or a finish.
    stream: RequestId,
    is_finish: bool,
}

impl Teller {
    pub(in crate::sim::world) fn new(start: Timestamp, reveals_keys: bool) -> Self {
        Self {
            start,
            reveals_keys,
            phase: PhaseName::Connect,
            lines: Vec::new(),
            open: Vec::new(),
            calls: BTreeMap::new(),
            leased: BTreeSet::new(),
            is_alone: false,
            strikes: BTreeMap::new(),
            is_frozen: false,
        }
    }

    /// Keeps what was told up to now: what matters has happened.
    pub(in crate::sim::world) fn freeze(&mut self) {
        self.is_frozen = true;
    }

    pub(in crate::sim::world) fn into_lines(mut self) -> Vec<Line> {
        self.flush();
        self.lines
    }

    /// Tells what the machine hands out.
    pub(in crate::sim::world) fn effect(&mut self, now: Timestamp, effect: &Effect) {
        let sent = |what: &str| Phrase::new(Mark::Sent, what);
        let phrase = match effect {
            Effect::ListStores { .. } => sent("PD: list all stores"),
            Effect::ScanRegions { range, .. } => {
                let mut phrase = sent("PD: describe regions").counting(1, "ranges");
                if self.reveals_keys {
                    phrase.names.push(range.reveal().to_string());
                }
                phrase
            }
            Effect::OpenStream { stream, store } => {
                self.note_call(*stream, store.id, *stream, false);
                sent("open a prepare stream").at(Some(store.id))
            }
            Effect::UpdateLease {
                request,
                stream,
                store_id,
                seconds,
            } => {
                self.note_call(*request, *store_id, *stream, false);
                sent(&format!("a lease of {seconds} s")).at(Some(*store_id))
            }
            Effect::ListClaims { request, store } => {
                self.note_call(*request, store.id, *request, false);
                sent("which regions do you lead?").at(Some(store.id))
            }
            Effect::WaitApply {
                store_id, regions, ..
            } => sent("say when you have applied")
                .at(Some(*store_id))
                .counting(regions.len(), "regions"),
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => {
                self.note_call(*request, store.id, *request, false);
                sent("read as leader")
                    .at(Some(store.id))
                    .counting(regions.len(), "regions")
            }
            Effect::Finish {
                request,
                stream,
                store_id,
            } => {
                self.note_call(*request, *store_id, *stream, true);
                sent("finish").at(Some(*store_id))
            }
            Effect::CloseStream { store_id, .. } => sent("close the stream").at(Some(*store_id)),
        };
        self.tell(now, phrase);
    }

    fn note_call(&mut self, request: RequestId, store: StoreId, stream: RequestId, fin: bool) {
        let call = Call {
            store: Some(store),
            stream,
            is_finish: fin,
        };
        self.calls.insert(request, call);
    }

    fn store_of(&self, request: RequestId) -> Option<StoreId> {
        self.calls.get(&request).and_then(|call| call.store)
    }

    /// Tells what happened to the client.
    pub(in crate::sim::world) fn event(&mut self, now: Timestamp, event: &Event) {
        let heard = |what: String| Phrase::new(Mark::Answered, what);
        match event {
            Event::StoresListed { stores, .. } => {
                self.tell(now, heard(format!("PD: there are {} stores", stores.len())));
            }
            Event::RegionsScanned { regions, .. } => {
                let phrase = heard("PD: described".to_owned());
                self.tell(now, phrase.counting(regions.len(), "regions"));
            }
            Event::StreamOpened { stream } => {
                let store = self.store_of(*stream);
                self.tell(now, heard("the stream is open".to_owned()).at(store));
            }
            Event::StreamEnded { stream, reason } => {
                let store = self.store_of(*stream);
                if reason.kind == FailureKind::Finished {
                    let ended = heard("the stream ended, as it should".to_owned());
                    return self.tell(now, ended.at(store));
                }
                let what = format!("THE STREAM ENDED, {:?}: {reason}", reason.kind);
                self.tell_alone(now, heard(what).at(store));
            }
            Event::LeaseUpdated {
                request,
                last_lease_is_valid,
            } => self.lease_updated(now, *request, *last_lease_is_valid),
            Event::RegionsClaimed {
                request, claims, ..
            } => {
                let store = self.store_of(*request);
                let claimed = heard("I lead".to_owned()).at(store);
                self.tell(now, claimed.counting(claims.len(), "regions"));
                for claim in claims.iter().filter(|claim| claim.has_pending_admin) {
                    let pending = heard("an admin command is pending".to_owned()).at(store);
                    let pending = pending.counting(1, "regions").naming(claim.region.id);
                    self.tell(now, pending);
                }
            }
            Event::WaitApplyDone { stream, answers } => {
                let store = self.store_of(*stream);
                for answer in answers {
                    let region = answer.target.map(|target| target.region_id);
                    self.region_answered(now, store, "applied", region, &answer.result);
                }
            }
            Event::LeaderReadDone { request, answers } => {
                let store = self.store_of(*request);
                for answer in answers {
                    let region = Some(answer.region_id);
                    self.region_answered(now, store, "served the read", region, &answer.result);
                }
            }
            Event::RequestFailed { request, failure } => {
                let store = self.store_of(*request);
                let who = if store.is_some() { "" } else { "PD: " };
                let what = format!("{who}a call failed, {:?}: {failure}", failure.kind);
                self.tell(now, heard(what).at(store));
            }
            Event::FinishRequested => {
                let what = "the caller has its snapshots and asks for the end";
                self.tell_alone(now, Phrase::new(Mark::Note, what));
            }
            Event::CancelRequested => {
                self.tell_alone(now, Phrase::new(Mark::Note, "the caller cancels"));
            }
            Event::LockLost => self.tell_alone(now, Phrase::new(Mark::Note, "the lock is lost")),
        }
    }

    fn lease_updated(&mut self, now: Timestamp, request: RequestId, valid: bool) {
        let call = self.calls.get(&request).copied();
        let is_first = call.is_some_and(|call| self.leased.insert(call.stream));
        let is_finish = call.is_some_and(|call| call.is_finish);
        let what = match (is_finish, is_first, valid) {
            (true, _, true) => "released; the lease had been in force",
            (true, _, false) => "released; THE LEASE HAD LAPSED",
            (false, true, true) => "leased; A LEASE WAS IN FORCE BEFORE",
            (false, true, false) => "leased",
            (false, false, true) => "renewed without a break",
            (false, false, false) => "renewed, but THE LEASE HAD LAPSED",
        };
        let phrase = Phrase::new(Mark::Answered, what).at(call.and_then(|call| call.store));
        if valid == is_first {
            self.tell_alone(now, phrase);
        } else {
            self.tell(now, phrase);
        }
    }

    fn region_answered(
        &mut self,
        now: Timestamp,
        store: Option<StoreId>,
        done: &str,
        region: Option<RegionId>,
        result: &Result<(), RegionError>,
    ) {
        let phrase = match result {
            Ok(()) => Phrase::new(Mark::Answered, done).counting(1, "regions"),
            Err(error) => {
                let what = format!("NOT {done}, {}", refusal(error));
                let phrase = Phrase::new(Mark::Answered, what).counting(1, "regions");
                match region {
                    Some(region) => phrase.naming(region),
                    None => phrase,
                }
            }
        };
        self.tell(now, phrase.at(store));
    }

    /// Tells what the machine says.
    pub(in crate::sim::world) fn notice(&mut self, now: Timestamp, notice: &Notice) {
        let note = |what: String| Phrase::new(Mark::Note, what);
        match notice {
            Notice::PhaseEntered { phase, attempt } => {
                let what = format!("{phase}, attempt {attempt}");
                self.tell_alone(now, Phrase::new(Mark::Phase, what));
                self.phase = *phase;
            }
            Notice::ForeignLease { .. } => {
                self.tell(now, note("somebody else's lease was in force".to_owned()));
            }
            Notice::Held(report) => {
                let what = format!(
                    "HELD: {} stores, {} regions, valid until {:.3}s unless renewed",
                    report.stores.len(),
                    report.regions,
                    self.since_start(report.valid_until).as_secs_f64()
                );
                self.tell_alone(now, note(what));
            }
            Notice::HoldLost(error) => {
                let what = format!("HOLD LOST: {}", self.words_of(error));
                self.tell_alone(now, note(what));
            }
            Notice::AttemptFailed { attempt, cause } => {
                let what = format!(
                    "attempt {attempt} is worth nothing: {}",
                    self.words_of(cause)
                );
                self.tell_alone(now, note(what));
            }
            Notice::StillWaiting { summary } => {
                self.tell_alone(now, note(format!("still waiting for {summary}")));
            }
            Notice::LateRenewal { store_id } => {
                let what = "a renewal went out late".to_owned();
                self.tell(now, note(what).at(Some(*store_id)));
            }
            Notice::HoldHalfway => {
                self.tell(now, note("half of the longest hold has passed".to_owned()));
            }
            Notice::Closed(report) => self.tell_alone(now, note(closing(report))),
        }
    }

    fn words_of(&self, error: &Error) -> String {
        match error.key_range() {
            Some(range) if self.reveals_keys => {
                format!(
                    "{}: {} (keys {})",
                    error.kind(),
                    error.message(),
                    range.reveal()
                )
            }
            _ => format!("{}: {}", error.kind(), error.message()),
        }
    }

    /// Tells the faults that struck since the last time.
    pub(in crate::sim::world) fn strikes(
        &mut self,
        now: Timestamp,
        strikes: &BTreeMap<(FaultKind, PhaseName), u64>,
    ) {
        let mut sums: BTreeMap<FaultKind, u64> = BTreeMap::new();
        for (&(kind, _), count) in strikes {
            *sums.entry(kind).or_default() += count;
        }
        for (kind, sum) in sums {
            let told = self.strikes.insert(kind, sum).unwrap_or(0);
            for _ in told..sum {
                let phrase = Phrase::new(Mark::Fault, format!("fault: {kind}"));
                if kind == FaultKind::Write {
                    // It does no harm, and there is much of it.
                    self.tell(now, phrase);
                } else {
                    self.tell_alone(now, phrase);
                }
            }
        }
    }

    pub(in crate::sim::world) fn note(&mut self, now: Timestamp, what: impl Into<String>) {
        self.tell_alone(now, Phrase::new(Mark::Note, what));
    }

    /// Tells something that goes together with what is similar around it.
    fn tell(&mut self, now: Timestamp, phrase: Phrase) {
        let begun = self.open.first().map(|(first, _, _)| *first);
        let is_far = begun.is_some_and(|begun| now > begun + TOGETHER);
        if self.is_alone || (is_far && self.phase != PhaseName::Hold) {
            self.flush();
        }
        self.put(now, phrase);
    }

    /// Tells something that is a line of its own, together with the same right
    /// before it.
    fn tell_alone(&mut self, now: Timestamp, phrase: Phrase) {
        let last = self.open.last();
        if !(self.is_alone && last.is_some_and(|(_, _, group)| group.takes(&phrase))) {
            self.flush();
        }
        self.put(now, phrase);
        self.is_alone = true;
    }

    fn put(&mut self, now: Timestamp, phrase: Phrase) {
        if self.is_frozen {
            return;
        }
        let mut similar = self.open.iter_mut();
        match similar.find(|(_, _, group)| group.takes(&phrase)) {
            Some((_, last, group)) => {
                *last = now;
                group.add(phrase);
            }
            None => self.open.push((now, now, Group::new(phrase))),
        }
    }

    fn flush(&mut self) {
        self.is_alone = false;
        for (first, last, group) in std::mem::take(&mut self.open) {
            self.lines.push(Line {
                at: self.since_start(first),
                until: self.since_start(last),
                mark: group.phrase.mark,
                text: group.text(),
            });
        }
    }

    fn since_start(&self, at: Timestamp) -> Duration {
        at.saturating_duration_since(self.start)
    }
}

fn closing(report: &FinishReport) -> String {
    let released: BTreeSet<StoreId> = report.released().collect();
    let mut text = if released.is_empty() {
        "over".to_owned()
    } else {
        format!("over; released: {}", stores(&released))
    };
    for (store, left) in report.unreleased() {
        text.push_str(&format!("; store {store} may stay suspended for {left:?}"));
    }
    text
}
