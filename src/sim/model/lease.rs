use crate::time::Timestamp;

/// A store's lease: one for the whole process, in whole seconds of a coarse
/// clock (tikv `components/raftstore/src/store/snapshot_backup.rs`).
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The second until which the store is suspended; 0 for none.
    deadline: u64,
    /// What this store's clock shows beyond ours, in microseconds. Never under
    /// a second, so that no deadline is in the past of a new store.
    offset: u64,
}

impl Lease {
    pub(super) fn new(offset: u64) -> Self {
        Self {
            deadline: 0,
            offset: offset.max(1_000_000),
        }
    }

    fn second(&self, now: Timestamp) -> u64 {
        now.as_micros().saturating_add(self.offset) / 1_000_000
    }

    /// Moves the deadline, only ever forward, and returns whether the old one
    /// was later than now. The sum wraps round as the store's does.
    pub(super) fn update(&mut self, seconds: u64, now: Timestamp) -> bool {
        let second = self.second(now);
        let was_valid = self.deadline > second;
        self.deadline = self.deadline.max(second.wrapping_add(seconds));
        was_valid
    }

    /// Returns whether commands are refused and waits accepted. At equality
    /// this says yes where [`Lease::update`] says no.
    pub(super) fn is_suspended(&self, now: Timestamp) -> bool {
        self.deadline >= self.second(now)
    }

    /// Returns the whole seconds left, as refusals tell them.
    #[cfg(test)]
    pub(super) fn seconds_left(&self, now: Timestamp) -> u64 {
        self.deadline.saturating_sub(self.second(now))
    }

    /// Ends the lease and returns whether it was in force.
    pub(super) fn finish(&mut self, now: Timestamp) -> bool {
        let was = self.is_suspended(now);
        self.deadline = 0;
        was
    }

    /// Forgets the lease, as a restart does.
    pub(super) fn forget(&mut self) {
        self.deadline = 0;
    }

    /// Returns the first instant at which the store is suspended no more, if
    /// nothing happens until then.
    pub(super) fn free_at(&self) -> Timestamp {
        let free = self.deadline.saturating_add(1).saturating_mul(1_000_000);
        Timestamp::from_micros(free.saturating_sub(self.offset))
    }

    /// Returns the time left until [`Lease::free_at`].
    #[cfg(test)]
    fn left(&self, now: Timestamp) -> std::time::Duration {
        self.free_at().saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn lease() -> Lease {
        // The store's clock ticks with ours.
        Lease::new(7_000_000)
    }

    #[test]
    fn s1_2_to_1_6_a_lease_only_grows() {
        let mut lease = lease();
        assert!(!lease.update(60, at(0)));
        assert!(lease.update(60, at(10)));
        assert!(lease.update(0, at(20)));
        assert_eq!(lease.seconds_left(at(20)), 60);
        assert!(lease.update(10, at(30)));
        assert_eq!(lease.seconds_left(at(30)), 60);
        assert!(lease.update(120, at(40)));
        assert_eq!(lease.seconds_left(at(40)), 120);
    }

    #[test]
    fn s1_7_1_10_1_11_finish_says_whether_it_was_in_force() {
        let mut lease = lease();
        assert!(!lease.finish(at(0)));
        lease.update(2, at(0));
        assert!(lease.finish(at(100)));
        assert!(!lease.is_suspended(at(100)));
        lease.update(2, at(200));
        assert!(!lease.finish(at(5_000)));
    }

    #[test]
    fn s1_9_a_lapsed_lease_is_made_new_by_the_call_that_reports_it() {
        let mut lease = lease();
        assert!(!lease.update(1, at(0)));
        assert!(!lease.update(10, at(3_000)));
        assert!(lease.is_suspended(at(3_000)));
    }

    #[test]
    fn s1_12_zero_seconds_last_until_the_next_second() {
        let mut lease = lease();
        assert!(!lease.update(0, at(300)));
        assert!(lease.is_suspended(at(999)));
        assert!(!lease.is_suspended(at(1_000)));
    }

    #[test]
    fn s1_13_1_14_the_sum_wraps_round() {
        let mut lease = lease();
        assert!(!lease.update(u64::MAX, at(0)));
        assert!(!lease.is_suspended(at(0)));
        assert!(!lease.update(i64::MAX as u64, at(0)));
        assert!(lease.is_suspended(at(1_000_000_000)));
    }

    #[test]
    fn s1_the_last_second_is_suspended_but_not_valid() {
        let mut lease = lease();
        lease.update(2, at(1_400));
        assert!(lease.is_suspended(at(3_999)));
        assert_eq!(lease.left(at(3_000)), Duration::from_secs(1));
        let mut renewed = lease.clone();
        assert!(!renewed.update(2, at(3_000)));
        assert!(lease.clone().finish(at(3_999)));
        assert!(!lease.is_suspended(at(4_000)));
    }
}
