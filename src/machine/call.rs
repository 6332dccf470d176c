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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Config;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn a_call_is_overdue_without_progress_and_not_a_moment_sooner() {
        let mut core = Core::new(Config::default(), at(100));
        let mut call = Call::default();
        assert!(call.is_idle() && !call.is_waiting());
        assert_eq!((call.deadline(TIMEOUT), call.sent()), (None, None));
        let request = call.start(&mut core);
        assert!(call.is(request) && !call.is(core.number()));
        assert_eq!(call.request(), Some(request));
        assert!(call.is_waiting() && !call.is_idle());
        assert_eq!(call.sent(), Some(at(100)));
        assert_eq!(call.deadline(TIMEOUT), Some(at(110)));
        call.note_progress(at(105));
        assert_eq!(call.sent(), Some(at(100)), "progress is no new start");
        assert_eq!(call.deadline(TIMEOUT), Some(at(115)));
        let late = |secs| call.is_overdue(at(secs), TIMEOUT);
        assert_eq!([late(110), late(114), late(115)], [false, false, true]);
        assert!(!call.is_due(at(1000)));
    }

    #[test]
    fn a_call_that_failed_is_due_after_a_backoff_that_grows() {
        let mut core = Core::new(Config::default(), at(100));
        let mut call = Call::default();
        let mut pauses = Vec::new();
        for _ in 0..20 {
            call.start(&mut core);
            call.fail(&mut core);
            assert_eq!((call.request(), call.sent()), (None, None));
            assert!(!call.is_idle() && !call.is_waiting());
            let due = call.deadline(TIMEOUT).expect("a backoff");
            assert!(!call.is_due(core.now) && call.is_due(due));
            assert!(!call.is_overdue(due + TIMEOUT, TIMEOUT));
            pauses.push(due.saturating_duration_since(core.now));
        }
        let config = Config::default();
        assert!(pauses[0] >= config.backoff_min / 2 && pauses[0] <= config.backoff_min);
        assert!(pauses[19] >= config.backoff_max / 2 && pauses[19] <= config.backoff_max);
        call.rest();
        assert!(call.is_idle());
        // A success lets it begin anew.
        call.start(&mut core);
        call.finish();
        assert!(call.is_idle());
        call.fail(&mut core);
        let due = call.deadline(TIMEOUT).expect("a backoff");
        assert!(due <= core.now + config.backoff_min);
    }
}
