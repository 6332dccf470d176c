use super::{Config, Effect, Event, Notice, Outcome};
use crate::error::Error;
use crate::progress::{FinishReport, PhaseName, PrepareReport, Progress};
use crate::time::Timestamp;

/// The state machine of one run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    config: Config,
}

impl Machine {
    /// Starts a run.
    ///
    /// # Errors
    /// See [`Config::validate`].
    pub fn new(config: Config, _now: Timestamp) -> Result<Self, Error> {
        config.validate()?;
        Ok(Self { config })
    }

    /// Takes in what happened.
    pub fn handle_event(&mut self, _event: Event, _now: Timestamp) {}

    /// Lets time pass.
    pub fn handle_timeout(&mut self, _now: Timestamp) {}

    /// Returns the next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        None
    }

    /// Returns the next thing worth telling.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        None
    }

    /// Returns the next deadline.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the phase.
    pub fn phase(&self) -> PhaseName {
        PhaseName::Connect
    }

    /// Returns how far the run is.
    pub fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Returns until when the hold can be trusted; `None` outside of it.
    pub fn valid_until(&self) -> Option<Timestamp> {
        None
    }

    /// Returns how the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        None
    }

    /// Returns what was prepared; `None` before the hold.
    pub fn prepare_report(&self) -> Option<&PrepareReport> {
        None
    }

    /// Returns what became of the leases; `None` until the run is over.
    pub fn finish_report(&self) -> Option<&FinishReport> {
        None
    }

    /// Describes what is being waited for: counters and at most `limit` regions
    /// and stores, no keys.
    pub fn waiting_for(&self, _limit: usize) -> String {
        String::new()
    }

    /// Checks what must hold between any two inputs.
    ///
    /// # Errors
    /// A sentence that says which invariant is broken, and where.
    pub fn check_invariants(&self) -> Result<(), String> {
        Ok(())
    }
}
