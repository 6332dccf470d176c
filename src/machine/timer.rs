use super::RequestId;
use crate::region::StoreId;
use crate::time::Timestamp;

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Timer {
    /// The hold has to have begun.
    PrepareDeadline,
    /// The store list is overdue, or due again.
    StoreList,
    /// A store's probe is overdue, or the store is to be tried again.
    Probe(StoreId),
    /// A dial is overdue, or a stream has settled.
    Dial(StoreId),
    /// A store's first lease has to be answered.
    FirstLease(StoreId),
    /// A store's lease is to be renewed.
    Renewal(StoreId),
    /// A store's lease can no longer be trusted.
    LeaseEnd(StoreId),
    /// A store's oldest wait is unanswered for too long.
    Ask(StoreId),
    /// A leader read is unanswered for too long.
    Read(RequestId),
    /// A failed range is to be looked at again.
    Retry,
    /// A scan is unanswered for too long.
    Scan(RequestId),
    /// A listing is overdue, or due again.
    Listing(StoreId),
    /// Half of the longest hold has passed.
    HoldHalfway,
    /// The hold passes its maximum length.
    HoldDeadline,
    /// A store's Finish is unanswered for too long.
    Finish(StoreId),
    /// Nothing has moved for a while.
    Quiet,
}

/// Finds the earliest of many deadlines.
#[derive(Debug, Default)]
pub(super) struct Timers {
    next: Option<(Timestamp, Timer)>,
}

impl Timers {
    pub(super) fn add(&mut self, at: Timestamp, timer: Timer) {
        if self.next.is_none_or(|(next, _)| at < next) {
            self.next = Some((at, timer));
        }
    }

    pub(super) fn add_some(&mut self, at: Option<Timestamp>, timer: Timer) {
        if let Some(at) = at {
            self.add(at, timer);
        }
    }

    pub(super) fn next(self) -> Option<(Timestamp, Timer)> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wins_and_of_equals_the_first() {
        let at = |secs: u64| Timestamp::from_micros(secs * 1_000_000);
        let mut timers = Timers::default();
        timers.add(at(5), Timer::Quiet);
        timers.add(at(3), Timer::Retry);
        timers.add_some(Some(at(3)), Timer::StoreList);
        timers.add_some(None, Timer::HoldDeadline);
        timers.add(at(4), Timer::HoldHalfway);
        assert_eq!(timers.next(), Some((at(3), Timer::Retry)));
        assert_eq!(Timers::default().next(), None);
    }
}
