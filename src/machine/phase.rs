use super::Config;
use super::Outcome;
use super::asking::Asking;
use super::connect::Connect;
use super::core::Core;
use super::normal::{Normalizer, blank_error};
use super::release::Release;
use super::session::Session;
use super::timer::{Timer, Timers};
use super::verify::Verify;
use crate::progress::PhaseName;
use crate::time::Timestamp;

/// Where a run is, with the data that only this phase needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    Connect(Connect),
    Suspend {
        session: Session,
        asking: Asking,
    },
    WaitApply {
        session: Session,
        asking: Asking,
    },
    Verify {
        session: Session,
        asking: Asking,
        verify: Verify,
    },
    Hold {
        session: Session,
        since: Timestamp,
        told_halfway: bool,
    },
    Release(Release),
    Closed(Outcome),
}

impl Phase {
    pub(super) const fn name(&self) -> PhaseName {
        match self {
            Self::Connect(_) => PhaseName::Connect,
            Self::Suspend { .. } => PhaseName::Suspend,
            Self::WaitApply { .. } => PhaseName::WaitApply,
            Self::Verify { .. } => PhaseName::Verify,
            Self::Hold { .. } => PhaseName::Hold,
            Self::Release(_) => PhaseName::Release,
            Self::Closed(_) => PhaseName::Closed,
        }
    }

    /// Returns whether the hold has still to begin.
    pub(super) const fn is_preparing(&self) -> bool {
        matches!(
            self,
            Self::Connect(_) | Self::Suspend { .. } | Self::WaitApply { .. } | Self::Verify { .. }
        )
    }

    pub(super) const fn session(&self) -> Option<&Session> {
        match self {
            Self::Suspend { session, .. }
            | Self::WaitApply { session, .. }
            | Self::Verify { session, .. }
            | Self::Hold { session, .. } => Some(session),
            Self::Connect(_) | Self::Release(_) | Self::Closed(_) => None,
        }
    }

    pub(super) const fn session_mut(&mut self) -> Option<&mut Session> {
        match self {
            Self::Suspend { session, .. }
            | Self::WaitApply { session, .. }
            | Self::Verify { session, .. }
            | Self::Hold { session, .. } => Some(session),
            Self::Connect(_) | Self::Release(_) | Self::Closed(_) => None,
        }
    }

    /// Returns the session and the books of those phases that ask.
    pub(super) const fn asking_mut(&mut self) -> Option<(&mut Session, &mut Asking)> {
        match self {
            Self::WaitApply { session, asking }
            | Self::Verify {
                session, asking, ..
            } => Some((session, asking)),
            _ => None,
        }
    }

    pub(super) const fn asking(&self) -> Option<&Asking> {
        match self {
            Self::Suspend { asking, .. }
            | Self::WaitApply { asking, .. }
            | Self::Verify { asking, .. } => Some(asking),
            _ => None,
        }
    }

    pub(super) fn normalize(&mut self, config: &Config, to: &mut Normalizer) {
        match self {
            Self::Connect(connect) => connect.normalize(to),
            Self::Suspend { session, asking } | Self::WaitApply { session, asking } => {
                session.normalize(to);
                asking.normalize(to);
            }
            Self::Verify {
                session,
                asking,
                verify,
            } => {
                session.normalize(to);
                asking.normalize(to);
                verify.normalize(to);
            }
            Self::Hold {
                session,
                since,
                told_halfway,
            } => {
                session.normalize(to);
                let half = config.hold_timeout / 2;
                if !*told_halfway && to.is_far(*since + half) {
                    // Both deadlines are too far ahead to be told apart.
                    to.forget(since);
                } else {
                    to.instant(since);
                }
            }
            Self::Release(release) => release.normalize(to),
            Self::Closed(Outcome::Failed(error) | Outcome::HoldLost(error)) => blank_error(error),
            Self::Closed(Outcome::Finished | Outcome::Cancelled) => {}
        }
    }

    /// Names all deadlines.
    pub(super) fn timers(&self, core: &Core, timers: &mut Timers) {
        if let Some(session) = self.session() {
            session.timers(core, timers);
        }
        if self.is_preparing() {
            timers.add(core.prepare_deadline, Timer::PrepareDeadline);
            timers.add(core.report_due(), Timer::Quiet);
        }
        match self {
            Self::Connect(connect) => connect.timers(core, timers),
            Self::Suspend { .. } | Self::Closed(_) => {}
            Self::WaitApply { asking, .. } | Self::Verify { asking, .. } => {
                asking.timers(core, timers)
            }
            Self::Hold {
                since,
                told_halfway,
                ..
            } => {
                timers.add(*since + core.config.hold_timeout, Timer::HoldDeadline);
                if !told_halfway {
                    timers.add(*since + core.config.hold_timeout / 2, Timer::HoldHalfway);
                }
            }
            Self::Release(release) => release.timers(timers),
        }
    }
}
