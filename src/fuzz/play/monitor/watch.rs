use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Config, ForeignLease, Machine, Notice, Outcome, RequestId};
use crate::progress::PhaseName;
use crate::region::StoreId;
use crate::time::Timestamp;

use super::attempt::{Attempt, Seq};
use super::ledger::Ledger;

/// Watches one run.
#[derive(Clone, Debug)]
pub struct Monitor {
    pub(super) config: Config,
    pub(super) started: Timestamp,
    pub(super) now: Timestamp,
    pub(super) seq: Seq,
    /// The phase before the input under way.
    pub(super) phase: PhaseName,
    pub(super) attempt: Attempt,
    pub(super) ledger: Ledger,
    /// Stores that a rival took over: never to be dialled again.
    pub(super) superseded: BTreeSet<StoreId>,
    /// The first lease of the run asked of each store.
    first_lease: BTreeMap<StoreId, RequestId>,
    /// Stores that somebody else had leased before.
    pub(super) foreign: BTreeSet<StoreId>,
    pub(super) held_since: Option<Timestamp>,
    /// What put the hold in doubt before its end was asked for.
    pub(super) hold_lost: Option<&'static str>,
    pub(super) finish_requested: bool,
    pub(super) finish_is_clean: bool,
    pub(super) cancelled: bool,
    pub(super) closed: bool,
}

impl Monitor {
    pub fn new(config: Config, now: Timestamp) -> Self {
        Self {
            config,
            started: now,
            now,
            seq: 0,
            phase: PhaseName::Connect,
            attempt: Attempt::default(),
            ledger: Ledger::default(),
            superseded: BTreeSet::new(),
            first_lease: BTreeMap::new(),
            foreign: BTreeSet::new(),
            held_since: None,
            hold_lost: None,
            finish_requested: false,
            finish_is_clean: false,
            cancelled: false,
            closed: false,
        }
    }

    /// Lets time pass: leases and the hold may be over by our own clock.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let now = self.now;
        let is_over = self
            .attempt
            .leased()
            .any(|stream| stream.is_over(&self.config, now));
        if is_over {
            self.unhold("a lease was over by our own clock");
        }
        if self
            .held_since
            .is_some_and(|since| since + self.config.hold_timeout <= now)
        {
            self.unhold("the hold was too long");
        }
    }

    /// Notes what ends a hold, if there is one that nobody asked to end.
    pub(super) fn unhold(&mut self, cause: &'static str) {
        if self.held_since.is_some() && !self.finish_requested {
            self.hold_lost.get_or_insert(cause);
        }
    }

    pub(super) fn note_first_lease(&mut self, store: StoreId, request: RequestId) {
        self.first_lease.entry(store).or_insert(request);
    }

    pub(super) fn note_foreign(&mut self, store: StoreId, request: RequestId) {
        if self.first_lease.get(&store) == Some(&request) {
            self.foreign.insert(store);
        }
    }

    /// Checks what an input led to, after all its effects.
    pub fn after(&mut self, machine: &Machine, notices: &[Notice]) -> Result<(), String> {
        machine.check_invariants()?;
        let timeout = machine.poll_timeout();
        if timeout.is_some_and(|at| at <= self.now) {
            return Err(format!(
                "the next deadline {timeout:?} is not after {}",
                self.now
            ));
        }
        if timeout.is_none() != machine.outcome().is_some() {
            return Err("a deadline after the end, or none before it".to_owned());
        }
        for notice in notices {
            if let Notice::PhaseEntered { phase, .. } = notice {
                self.enter(*phase, machine)?;
            }
        }
        if self.phase != machine.phase() {
            return Err("a phase without a notice".to_owned());
        }
        self.leases_are_renewed()
    }

    fn enter(&mut self, phase: PhaseName, machine: &Machine) -> Result<(), String> {
        self.phase = phase;
        match phase {
            PhaseName::Connect => self.attempt = Attempt::default(),
            PhaseName::Hold => {
                self.hold_is_proven()?;
                self.held_since = Some(self.now);
                if self.now >= self.started + self.config.prepare_timeout {
                    return Err("a hold after the prepare deadline".to_owned());
                }
            }
            PhaseName::Release => self.all_get_finish()?,
            PhaseName::Closed => self.close(machine)?,
            _ => {}
        }
        Ok(())
    }

    /// R3: in every phase from the first answer on, until Finish is queued, a
    /// renewal goes out at a quarter of the lease.
    fn leases_are_renewed(&self) -> Result<(), String> {
        let leasing = matches!(
            self.phase,
            PhaseName::Suspend | PhaseName::WaitApply | PhaseName::Verify | PhaseName::Hold
        );
        for stream in self.attempt.leased().filter(|_| leasing) {
            let due = stream.last_sent.map(|sent| sent + self.config.lease / 4);
            if stream.first_answered.is_some() && due.is_some_and(|due| due <= self.now) {
                return Err(format!(
                    "store {} is not renewed in time (R3)",
                    stream.store
                ));
            }
            if stream.is_over(&self.config, self.now) {
                return Err(format!("store {} is trusted too long (R3)", stream.store));
            }
            if stream.lapsed || stream.ended {
                return Err(format!(
                    "doubt about store {} is forgotten (R4)",
                    stream.store
                ));
            }
        }
        Ok(())
    }

    /// R16: at the beginning of the release everybody leased gets Finish.
    fn all_get_finish(&self) -> Result<(), String> {
        let refuse = self.config.foreign_lease == ForeignLease::Refuse;
        for stream in self.attempt.leased() {
            let left_alone = refuse && self.foreign.contains(&stream.store);
            if stream.finish.is_none() && !stream.ended && !left_alone {
                return Err(format!("store {} gets no Finish (R16)", stream.store));
            }
        }
        Ok(())
    }

    fn close(&mut self, machine: &Machine) -> Result<(), String> {
        self.closed = true;
        let open = self.attempt.streams.values().find(|stream| !stream.closed);
        if let Some(stream) = open {
            return Err(format!("the stream of store {} is left open", stream.store));
        }
        let report = machine.finish_report().ok_or("closed without a report")?;
        let left_alone = match self.config.foreign_lease {
            ForeignLease::Refuse => self.foreign.clone(),
            _ => BTreeSet::new(),
        };
        self.ledger.check(&self.config, report, &left_alone)?;
        let outcome = machine.outcome().ok_or("closed without an outcome")?;
        self.outcome_is_honest(outcome)
    }

    /// The verdict fits what was seen.
    fn outcome_is_honest(&self, outcome: &Outcome) -> Result<(), String> {
        match (outcome, self.held_since) {
            (Outcome::Finished, _) => self.finished_is_earned(),
            (Outcome::HoldLost(_) | Outcome::Cancelled, Some(_)) => Ok(()),
            (Outcome::Failed(_) | Outcome::Cancelled, None) => Ok(()),
            (outcome, held) => Err(format!("{outcome:?} after a hold since {held:?}")),
        }
    }
}
