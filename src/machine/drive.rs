use super::asking::Asking;
use super::connect::Connect;
use super::core::{Core, Stop};
use super::phase::Phase;
use super::release::{Release, Then};
use super::report;
use super::timer::{Timer, Timers};
use super::verify::Verify;
use super::waiting;
use super::{Config, Effect, Event, Notice, Outcome, RequestId};
use crate::error::{Error, ErrorKind, Failure};
use crate::progress::{FinishReport, PhaseName, PrepareReport, Progress};
use crate::time::Timestamp;

/// The state machine of one run; see the [module](super) for how to drive it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    pub(super) core: Core,
    pub(super) phase: Phase,
}

/// Getters.
impl Machine {
    /// Starts a run.
    ///
    /// # Errors
    /// See [`Config::validate`].
    pub fn new(config: Config, now: Timestamp) -> Result<Self, Error> {
        config.validate()?;
        let mut machine = Self {
            core: Core::new(config, now),
            phase: Phase::Connect(Connect::new(now)),
        };
        machine.note_phase();
        machine.expire();
        Ok(machine)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Returns the phase.
    pub fn phase(&self) -> PhaseName {
        self.phase.name()
    }

    /// Returns how far the run is.
    pub fn progress(&self) -> Progress {
        report::progress(&self.core, &self.phase)
    }

    /// Returns until when the hold can be trusted if no further renewal is
    /// answered; `None` outside of it.
    pub fn valid_until(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Hold { session, since, .. } => session
                .trusted_until(&self.core)
                .map(|until| until.min(*since + self.core.config.hold_timeout)),
            _ => None,
        }
    }

    /// Returns how the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Closed(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns what was prepared; `None` before the hold.
    pub fn prepare_report(&self) -> Option<&PrepareReport> {
        self.core.prepared.as_deref()
    }

    /// Returns what became of the leases; `None` until the run is over.
    pub fn finish_report(&self) -> Option<&FinishReport> {
        self.core.finished.as_deref()
    }

    /// Describes what is being waited for: counters and at most `limit` regions
    /// and stores, no keys.
    pub fn waiting_for(&self, limit: usize) -> String {
        waiting::waiting_for(&self.core, &self.phase, limit)
    }
}

/// Inputs.
impl Machine {
    /// Takes in what happened. Time does not go back: an earlier `now` counts as
    /// the latest one seen.
    pub fn handle_event(&mut self, event: Event, now: Timestamp) {
        self.handle_timeout(now);
        self.dispatch(event);
        self.settle();
    }

    /// Lets time pass. Calling it early is harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.core.now = self.core.now.max(now);
        self.expire();
        self.settle();
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::StoresListed { request, stores } => self.on_stores(request, stores),
            Event::StreamOpened { stream } => match &mut self.phase {
                Phase::Connect(connect) => connect.handle_opened(&mut self.core, stream),
                _ => self.core.ignore(),
            },
            Event::StreamEnded { stream, reason } => self.on_stream_ended(stream, reason),
            Event::LeaseUpdated {
                request,
                last_lease_is_valid,
            } => self.on_lease(request, last_lease_is_valid),
            Event::RegionsClaimed {
                request,
                claims,
                done,
            } => match &mut self.phase {
                Phase::Connect(connect) => {
                    connect.handle_claims(&mut self.core, request, &claims, done)
                }
                Phase::Suspend { session, asking } => {
                    asking.refresh(&mut self.core, session, request, claims, done);
                }
                phase => match phase.asking_mut() {
                    Some((session, asking)) => {
                        asking.handle_claims(&mut self.core, session, request, claims, done);
                    }
                    None => self.core.ignore(),
                },
            },
            Event::WaitApplyDone { stream, answers } => self.on_waits(stream, answers),
            Event::LeaderReadDone { request, answers } => match self.phase.asking_mut() {
                Some((session, asking)) => {
                    for answer in &answers {
                        asking.handle_read(&mut self.core, session, request, answer);
                    }
                }
                None => self.core.ignore(),
            },
            Event::RegionsScanned { request, regions } => match self.phase.asking_mut() {
                Some((session, asking)) => {
                    asking.handle_scan(&mut self.core, session, request, &regions);
                }
                None => self.core.ignore(),
            },
            Event::RequestFailed { request, failure } => self.on_failed(request, &failure),
            Event::FinishRequested => self.core.stop(Stop::Finish),
            Event::CancelRequested => self.core.stop(Stop::Cancel),
            Event::LockLost => self.core.stop(Stop::Fail(lock_lost())),
        }
    }

    fn on_stores(&mut self, request: RequestId, stores: Vec<crate::region::Store>) {
        match &mut self.phase {
            Phase::Connect(connect) => connect.handle_stores(&mut self.core, request, stores),
            phase => match phase.asking_mut() {
                Some((session, asking)) => {
                    asking.handle_stores(&mut self.core, session, request, &stores);
                }
                None => self.core.ignore(),
            },
        }
    }

    fn on_stream_ended(&mut self, stream: RequestId, reason: Failure) {
        match &mut self.phase {
            Phase::Connect(connect) => connect.handle_end(&mut self.core, stream, &reason),
            Phase::Release(release) => release.handle_end(&mut self.core, stream, &reason),
            phase => match phase.session_mut() {
                Some(session) => session.handle_end(&mut self.core, stream, reason),
                None => self.core.ignore(),
            },
        }
    }

    fn on_lease(&mut self, request: RequestId, valid: bool) {
        match &mut self.phase {
            Phase::Release(release) => release.handle_lease(&mut self.core, request, valid),
            phase => match phase.session_mut() {
                Some(session) => session.handle_lease(&mut self.core, request, valid),
                None => self.core.ignore(),
            },
        }
    }

    fn on_waits(&mut self, stream: RequestId, answers: Vec<crate::region::WaitAnswer>) {
        let Some((session, asking)) = self.phase.asking_mut() else {
            self.core.ignore();
            return;
        };
        let Some(store) = session
            .store_of(stream)
            .and_then(|id| session.stores.get(&id))
        else {
            self.core.ignore();
            return;
        };
        for answer in answers {
            let target = answer.target.map(|target| (target.region_id, target.epoch));
            asking.handle_wait(&mut self.core, &store.store, target, answer.result);
        }
    }

    fn on_failed(&mut self, request: RequestId, failure: &Failure) {
        if let Phase::Connect(connect) = &mut self.phase {
            connect.handle_failed(&mut self.core, request, failure);
            return;
        }
        match &mut self.phase {
            Phase::Suspend { session, asking }
            | Phase::WaitApply { session, asking }
            | Phase::Verify {
                session, asking, ..
            } => asking.handle_failed(&mut self.core, session, request, failure),
            _ => self.core.ignore(),
        }
    }
}

/// Outputs.
impl Machine {
    /// Returns the next thing to do, `None` when there is nothing.
    #[must_use]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.core.poll_effect()
    }

    /// Returns the next thing worth telling.
    #[must_use]
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.core.poll_notice()
    }

    /// Returns when [`Machine::handle_timeout`] has to be called next, `None`
    /// when the run is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.next_timer().map(|(at, _)| at)
    }

    /// Returns the next deadline and what it is for.
    pub fn next_timer(&self) -> Option<(Timestamp, Timer)> {
        let mut timers = Timers::default();
        self.phase.timers(&self.core, &mut timers);
        timers.next()
    }
}

/// Moving on.
impl Machine {
    /// Does what time alone asks for, doubt first.
    fn expire(&mut self) {
        let core = &mut self.core;
        if let Some(session) = self.phase.session_mut() {
            session.expire(core);
        }
        if self.phase.is_preparing() {
            if core.prepare_deadline <= core.now && !core.is_stopping() {
                let error = report::deadline_error(core, &self.phase);
                core.stop(Stop::Fail(error));
            }
            if core.report_due() <= core.now {
                let summary = waiting::waiting_for(core, &self.phase, waiting::SAMPLE);
                core.note_report();
                core.notify(Notice::StillWaiting { summary });
            }
        }
        match &mut self.phase {
            Phase::Connect(connect) => connect.expire(core),
            Phase::WaitApply { asking, .. } | Phase::Verify { asking, .. } => asking.expire(core),
            Phase::Hold {
                since,
                told_halfway,
                ..
            } => {
                if *since + core.config.hold_timeout <= core.now {
                    core.stop(Stop::Fail(hold_too_long(core)));
                } else if !*told_halfway && *since + core.config.hold_timeout / 2 <= core.now {
                    *told_halfway = true;
                    core.notify(Notice::HoldHalfway);
                }
            }
            Phase::Release(release) => release.expire(core),
            Phase::Suspend { .. } | Phase::Closed(_) => {}
        }
    }

    /// Moves from phase to phase as long as something is due.
    fn settle(&mut self) {
        loop {
            if let Some(stop) = self.core.take_stop() {
                self.stop(stop);
                continue;
            }
            if let Some(session) = self.phase.session_mut() {
                // An answer can make a deadline known that has passed already.
                session.expire(&mut self.core);
                if self.core.is_stopping() {
                    continue;
                }
            }
            if let Some((session, asking)) = self.phase.asking_mut() {
                asking.pump(&mut self.core, session);
            }
            if !self.advance() && !self.core.is_stopping() {
                return;
            }
        }
    }

    /// Enters the next phase if the present one is done. Returns whether it did.
    fn advance(&mut self) -> bool {
        let core = &mut self.core;
        let done = match &mut self.phase {
            Phase::Connect(connect) => connect.is_complete(),
            Phase::Suspend { session, .. } => {
                let leased = session.all_acknowledged();
                if leased {
                    session.check_foreign(core);
                }
                leased && !core.is_stopping()
            }
            Phase::WaitApply { asking, .. } => asking.is_complete(core),
            Phase::Verify {
                session,
                asking,
                verify,
            } => verify.step(core, session, asking),
            Phase::Release(release) => release.is_done(),
            Phase::Hold { .. } | Phase::Closed(_) => false,
        };
        if done {
            let phase = std::mem::replace(&mut self.phase, Phase::Closed(Outcome::Cancelled));
            self.phase = self.enter_next(phase);
            self.note_phase();
            if let Phase::Connect(connect) = &mut self.phase {
                connect.expire(&mut self.core);
            }
        }
        done
    }

    fn enter_next(&mut self, phase: Phase) -> Phase {
        let core = &mut self.core;
        match phase {
            Phase::Connect(connect) => {
                let (mut session, shelves) = connect.into_session();
                session.renew_all(core);
                let mut asking = Asking::new(shelves);
                asking.begin_refresh(core, &session);
                Phase::Suspend { session, asking }
            }
            Phase::Suspend {
                session,
                mut asking,
            } => {
                asking.start(core);
                // Listings that failed meanwhile may be due again by now.
                asking.expire(core);
                Phase::WaitApply { session, asking }
            }
            Phase::WaitApply { session, asking } => Phase::Verify {
                session,
                asking,
                verify: Verify::default(),
            },
            Phase::Verify {
                session,
                asking,
                verify,
            } => {
                let report = report::prepare_report(core, &session, &asking, &verify);
                core.notify(Notice::Held(Box::new(report.clone())));
                core.prepared = Some(Box::new(report));
                Phase::Hold {
                    session,
                    since: core.now,
                    told_halfway: false,
                }
            }
            Phase::Release(release) => self.conclude(&release),
            Phase::Hold { .. } | Phase::Closed(_) => phase,
        }
    }

    /// Ends the present phase early.
    fn stop(&mut self, stop: Stop) {
        if let Phase::Release(release) = &mut self.phase {
            release.upgrade(then_without_hold(stop));
            return;
        }
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Closed(Outcome::Cancelled));
        let then = if matches!(phase, Phase::Hold { .. }) {
            then_with_hold(stop)
        } else {
            then_without_hold(stop)
        };
        match &then {
            Then::Again(cause) => self.core.notify(Notice::AttemptFailed {
                attempt: self.core.attempt,
                cause: cause.clone(),
            }),
            Then::Lost(cause) => self.core.notify(Notice::HoldLost(cause.clone())),
            Then::Failed(_) | Then::Cancelled | Then::Verdict => {}
        }
        let session = match phase {
            Phase::Connect(mut connect) => {
                connect.close_all(&mut self.core);
                super::session::Session::default()
            }
            Phase::Suspend { session, .. }
            | Phase::WaitApply { session, .. }
            | Phase::Verify { session, .. }
            | Phase::Hold { session, .. } => session,
            Phase::Release(_) | Phase::Closed(_) => return,
        };
        self.phase = Phase::Release(Release::begin(&mut self.core, session, then));
        self.note_phase();
    }

    /// Decides what follows once all is released.
    fn conclude(&mut self, release: &Release) -> Phase {
        let core = &mut self.core;
        core.note_released(release.states());
        let outcome = match release.then.clone() {
            Then::Again(cause) => {
                let start = core.now + core.backoff(core.attempt);
                if start < core.prepare_deadline {
                    core.attempt = core.attempt.saturating_add(1);
                    core.suspended_at = None;
                    return Phase::Connect(Connect::new(start));
                }
                Outcome::Failed(report::no_time_left(core, &cause))
            }
            Then::Failed(error) => Outcome::Failed(error),
            Then::Lost(error) => Outcome::HoldLost(error),
            Then::Cancelled => Outcome::Cancelled,
            Then::Verdict => release.verdict(),
        };
        let report = report::finish_report(core, release, &outcome);
        core.notify(Notice::Closed(Box::new(report.clone())));
        core.finished = Some(Box::new(report));
        Phase::Closed(outcome)
    }

    fn note_phase(&mut self) {
        self.core.note_move();
        self.core.note_phase(self.phase.name());
        let notice = Notice::PhaseEntered {
            phase: self.phase.name(),
            attempt: self.core.attempt,
        };
        self.core.notify(notice);
    }
}

fn then_without_hold(stop: Stop) -> Then {
    match stop {
        Stop::Retry(error) => Then::Again(error),
        Stop::Fail(error) => Then::Failed(error),
        // Nothing is held yet, so a finish can only mean that nobody wants it.
        Stop::Cancel | Stop::Finish => Then::Cancelled,
    }
}

fn then_with_hold(stop: Stop) -> Then {
    match stop {
        Stop::Retry(error) | Stop::Fail(error) => Then::Lost(error),
        Stop::Cancel => Then::Cancelled,
        Stop::Finish => Then::Verdict,
    }
}

fn lock_lost() -> Error {
    Error::new(
        ErrorKind::LockLost,
        "the lock that guards this run was lost",
    )
}

fn hold_too_long(core: &Core) -> Error {
    Error::new(
        ErrorKind::HoldTimeout,
        format!(
            "the hold passed its maximum length of {:?}; discard the snapshots, or allow a longer hold",
            core.config.hold_timeout
        ),
    )
}
