use std::time::Duration;

use super::RequestId;
use super::core::Core;
use super::normal::Normalizer;
use crate::time::Timestamp;

/// A call that is repeated until it succeeds: what of it is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Call {
    state: CallState,
    tries: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum CallState {
    #[default]
    Idle,
    Waiting {
        request: RequestId,
        sent: Timestamp,
        progress: Timestamp,
    },
    Backoff {
        due: Timestamp,
    },
}

impl Call {
    /// Starts the call and returns its number. What was under way is given up.
    pub(super) fn start(&mut self, core: &mut Core) -> RequestId {
        let request = core.number();
        self.state = CallState::Waiting {
            request,
            sent: core.now,
            progress: core.now,
        };
        request
    }

    /// Lets the call start at `due`.
    pub(super) fn start_at(&mut self, due: Timestamp) {
        self.state = CallState::Backoff { due };
    }

    /// Returns whether `request` is the call under way.
    pub(super) fn is(&self, request: RequestId) -> bool {
        self.request() == Some(request)
    }

    pub(super) fn request(&self) -> Option<RequestId> {
        match self.state {
            CallState::Waiting { request, .. } => Some(request),
            CallState::Idle | CallState::Backoff { .. } => None,
        }
    }

    /// Returns when the call under way was started.
    pub(super) fn sent(&self) -> Option<Timestamp> {
        match self.state {
            CallState::Waiting { sent, .. } => Some(sent),
            CallState::Idle | CallState::Backoff { .. } => None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == CallState::Idle
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, CallState::Waiting { .. })
    }

    /// Notes that a part of the answer came.
    pub(super) fn note_progress(&mut self, now: Timestamp) {
        if let CallState::Waiting { progress, .. } = &mut self.state {
            *progress = now;
        }
    }

    /// Notes that the whole answer came.
    pub(super) fn finish(&mut self) {
        self.state = CallState::Idle;
        self.tries = 0;
    }

    /// Ends a backoff without starting the call.
    pub(super) fn rest(&mut self) {
        self.state = CallState::Idle;
    }

    /// Notes that the call failed: it is due again after a backoff.
    pub(super) fn fail(&mut self, core: &mut Core) {
        self.tries = self.tries.saturating_add(1);
        let due = core.now + core.backoff(self.tries);
        self.state = CallState::Backoff { due };
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self { state, tries } = self;
        *tries = to.tries(*tries);
        match state {
            CallState::Idle => {}
            CallState::Waiting {
                request,
                sent,
                progress,
            } => {
                to.number(request);
                to.instant(sent);
                to.instant(progress);
            }
            CallState::Backoff { due } => to.instant(due),
        }
    }

    /// Returns whether the backoff is over.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.state, CallState::Backoff { due } if due <= now)
    }

    /// Returns whether the call has gone without progress for `timeout`.
    pub(super) fn is_overdue(&self, now: Timestamp, timeout: Duration) -> bool {
        matches!(self.state, CallState::Waiting { progress, .. } if progress + timeout <= now)
    }

    /// Returns when to look at the call again.
    pub(super) fn deadline(&self, timeout: Duration) -> Option<Timestamp> {
        match self.state {
            CallState::Idle => None,
            CallState::Waiting { progress, .. } => Some(progress + timeout),
            CallState::Backoff { due } => Some(due),
        }
    }
}
