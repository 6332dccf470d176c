use std::collections::VecDeque;
use std::time::Duration;

use super::normal::Normalizer;
use super::{Config, RequestId};
use crate::time::Timestamp;

/// One store's lease as we may trust it (rules R2 and R3).
///
/// A lease is counted from the instant its request was handed out, which is
/// before it was sent and before the store saw it, so that our end of it is
/// never later than the store's.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Lease {
    /// Requests not answered yet, oldest first, with the time each was sent.
    pending: VecDeque<(RequestId, Timestamp)>,
    first_sent: Option<Timestamp>,
    last_sent: Option<Timestamp>,
    /// The send time of the last acknowledged request.
    acknowledged: Option<Timestamp>,
    last_answer: Option<Timestamp>,
    /// The last renewal that was answered 'valid'.
    renewed: Option<RequestId>,
    lapsed: bool,
}

/// What an answer to `UpdateLease` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeaseAnswer {
    /// The first lease of the attempt; `foreign` when one was in force before.
    First {
        /// Whether the store was leased already.
        foreign: bool,
    },
    /// In force without a break.
    Renewed,
    /// There was a break: not valid.
    Lapsed,
    /// Answers the wrong request: the store, or the way to it, mixes them up.
    OutOfOrder,
}

impl Lease {
    /// Notes that an `UpdateLease` is handed out.
    pub(super) fn note_sent(&mut self, request: RequestId, now: Timestamp) {
        self.pending.push_back((request, now));
        self.first_sent.get_or_insert(now);
        self.last_sent = Some(now);
    }

    /// Takes in the answer to `request`, `None` when it was never sent.
    pub(super) fn note_answer(
        &mut self,
        request: RequestId,
        valid: bool,
        now: Timestamp,
    ) -> Option<LeaseAnswer> {
        let at = self.pending.iter().position(|(id, _)| *id == request)?;
        let (_, sent) = self.pending.remove(at)?;
        self.last_answer = Some(now);
        if at > 0 {
            self.lapsed = true;
            return Some(LeaseAnswer::OutOfOrder);
        }
        let first = self.acknowledged.is_none();
        self.acknowledged = Some(sent);
        if first {
            return Some(LeaseAnswer::First { foreign: valid });
        }
        if !valid {
            self.lapsed = true;
            return Some(LeaseAnswer::Lapsed);
        }
        self.renewed = Some(request);
        Some(LeaseAnswer::Renewed)
    }

    /// Returns whether the store may hold our lease.
    pub(super) fn may_be_held(&self) -> bool {
        self.first_sent.is_some()
    }

    /// Returns whether the first lease was acknowledged.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acknowledged.is_some()
    }

    /// Returns whether a request is unanswered.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns whether an answer showed a break.
    pub(super) fn has_lapsed(&self) -> bool {
        self.lapsed
    }

    /// Returns until when the lease is trusted, `None` before the first answer.
    pub(super) fn trusted_until(&self, config: &Config) -> Option<Timestamp> {
        self.acknowledged.map(|sent| sent + config.trusted_for())
    }

    /// Returns when the first answer has to be there, `None` once it is.
    pub(super) fn first_deadline(&self, timeout: Duration) -> Option<Timestamp> {
        match (self.acknowledged, self.first_sent) {
            (None, Some(sent)) => Some(sent + timeout),
            _ => None,
        }
    }

    /// Returns when the next renewal is due, `None` before the first answer.
    pub(super) fn renewal_due(&self, config: &Config) -> Option<Timestamp> {
        self.acknowledged?;
        self.last_sent.map(|sent| sent + config.renew_every())
    }

    /// Returns whether a renewal that leaves now is late: well after it was due, and
    /// with less than the margin left. With a short lease that little is left as a
    /// rule, and what the store leaves unanswered makes no renewal late.
    pub(super) fn is_late(&self, config: &Config, now: Timestamp) -> bool {
        let (Some(until), Some(due)) = (self.trusted_until(config), self.renewal_due(config))
        else {
            return false;
        };
        until.saturating_duration_since(now) < config.margin
            && now.saturating_duration_since(due) > config.renew_every() / 2
    }

    /// Returns whether a renewal with the number `mark` or a later one was
    /// answered 'valid'. Numbers tell what came first even at one instant.
    pub(super) fn is_renewed_since(&self, mark: RequestId) -> bool {
        self.renewed.is_some_and(|request| request >= mark)
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            pending,
            first_sent,
            last_sent,
            acknowledged,
            last_answer,
            renewed,
            lapsed: _,
        } = self;
        for (request, sent) in pending {
            to.number(request);
            to.instant(sent);
        }
        if acknowledged.is_some() {
            // From then on it only matters that there was one.
            *first_sent = first_sent.and(*acknowledged);
        }
        for at in [first_sent, last_sent, acknowledged, last_answer]
            .into_iter()
            .flatten()
        {
            to.instant(at);
        }
        if let Some(renewed) = renewed {
            to.past(renewed);
        }
    }

    /// Returns the latest instant at which the store's lease ends by itself. A
    /// request that is unanswered may still reach the store until `now`.
    pub(super) fn latest_end(&self, config: &Config, now: Timestamp) -> Timestamp {
        let reached = if self.pending.is_empty() {
            self.last_answer.unwrap_or(now)
        } else {
            now
        };
        // Stores count in whole seconds: one more can pass.
        reached + config.lease + Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    #[test]
    fn r3_trust_counts_from_the_send_time_of_the_last_acknowledged() {
        let config = Config::default();
        let mut lease = Lease::default();
        lease.note_sent(RequestId(1), at(10));
        assert_eq!(lease.trusted_until(&config), None);
        assert_eq!(
            lease.note_answer(RequestId(1), false, at(19)),
            Some(LeaseAnswer::First { foreign: false })
        );
        assert_eq!(lease.trusted_until(&config), Some(at(10 + 118)));
        lease.note_sent(RequestId(2), at(40));
        assert_eq!(
            lease.trusted_until(&config),
            Some(at(128)),
            "unanswered renewals extend nothing"
        );
        assert_eq!(lease.renewal_due(&config), Some(at(70)));
        assert_eq!(
            lease.note_answer(RequestId(2), true, at(45)),
            Some(LeaseAnswer::Renewed)
        );
        assert_eq!(lease.trusted_until(&config), Some(at(40 + 118)));
        assert!(lease.is_renewed_since(RequestId(2)) && !lease.is_renewed_since(RequestId(3)));
    }

    #[test]
    fn r4_a_later_good_answer_repairs_nothing() {
        let mut lease = Lease::default();
        for (id, valid) in [(1, false), (2, false), (3, true)] {
            lease.note_sent(RequestId(id), at(id));
            lease.note_answer(RequestId(id), valid, at(id));
        }
        assert!(lease.has_lapsed());
    }

    #[test]
    fn answers_out_of_order_are_seen() {
        let mut lease = Lease::default();
        lease.note_sent(RequestId(1), at(1));
        lease.note_sent(RequestId(2), at(2));
        assert_eq!(
            lease.note_answer(RequestId(2), true, at(3)),
            Some(LeaseAnswer::OutOfOrder)
        );
        assert_eq!(lease.note_answer(RequestId(9), true, at(3)), None);
    }
}
