use std::fmt;

use super::context::Contenders;
use super::{breaking, contention, holding, waiting};

/// A check that failed: its name, and what was wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The check.
    pub check: Check,
    /// What was wrong.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.message)
    }
}

impl std::error::Error for Violation {}

/// One part of the contract of a [`RunLock`](crate::lock::RunLock). A check
/// starts from and leaves behind a free lock, so that any one can run alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Check {
    /// A free lock is taken at once, is held, and status shows its holder alone.
    TakesFreeLock,
    /// Who comes second is refused at once and told who holds the lock.
    RefusesSecond,
    /// Others see of the holder what it says of itself.
    ShowsHolder,
    /// The same value cannot take the lock twice.
    NotReentrant,
    /// A release says so, and the lock can be taken again.
    ReleaseFrees,
    /// Status changes nothing, on a free lock and on a held one.
    StatusOnlyReads,
    /// Each acquisition has an id of its own; fencing numbers grow.
    AcquisitionsDiffer,
    /// A guard that is dropped frees the lock by and by.
    DropFrees,
    /// A lock that is held is held past the lease it was granted first: it is
    /// renewed. Says nothing on a lock that does not expire.
    HeldPastLease,
    /// Who waits gets the lock when it becomes free.
    WaitGetsLock,
    /// Who waits in vain is refused when the time is up, and leaves nothing.
    WaitEnds,
    /// Who gives up waiting leaves nothing behind.
    DroppedWaitLeavesNothing,
    /// Who gives up an acquisition that was begun leaves nothing behind, however
    /// far it had come.
    DroppedAcquireLeavesNothing,
    /// Breaking needs the id of the one who holds the lock.
    BreakNeedsId,
    /// A lock that was broken is lost, for good, and is gone at its release.
    BrokenIsLost,
    /// A lock that somebody else has now is lost, and left to the other.
    ReplacedIsLost,
    /// Many contenders, again and again: never two at once, everybody wins.
    Excludes,
}

impl Check {
    /// Every check, in the order in which [`run`] runs them.
    pub const ALL: [Self; 17] = [
        Self::TakesFreeLock,
        Self::RefusesSecond,
        Self::ShowsHolder,
        Self::NotReentrant,
        Self::ReleaseFrees,
        Self::StatusOnlyReads,
        Self::AcquisitionsDiffer,
        Self::DropFrees,
        Self::HeldPastLease,
        Self::WaitGetsLock,
        Self::WaitEnds,
        Self::DroppedWaitLeavesNothing,
        Self::DroppedAcquireLeavesNothing,
        Self::BreakNeedsId,
        Self::BrokenIsLost,
        Self::ReplacedIsLost,
        Self::Excludes,
    ];

    /// Returns the name of the check, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TakesFreeLock => "takes_free_lock",
            Self::RefusesSecond => "refuses_second",
            Self::ShowsHolder => "shows_holder",
            Self::NotReentrant => "not_reentrant",
            Self::ReleaseFrees => "release_frees",
            Self::StatusOnlyReads => "status_only_reads",
            Self::AcquisitionsDiffer => "acquisitions_differ",
            Self::DropFrees => "drop_frees",
            Self::HeldPastLease => "held_past_lease",
            Self::WaitGetsLock => "wait_gets_lock",
            Self::WaitEnds => "wait_ends",
            Self::DroppedWaitLeavesNothing => "dropped_wait_leaves_nothing",
            Self::DroppedAcquireLeavesNothing => "dropped_acquire_leaves_nothing",
            Self::BreakNeedsId => "break_needs_id",
            Self::BrokenIsLost => "broken_is_lost",
            Self::ReplacedIsLost => "replaced_is_lost",
            Self::Excludes => "excludes",
        }
    }

    /// Runs this check alone.
    ///
    /// # Errors
    /// A [`Violation`] when the lock did something else than what the contract
    /// says.
    ///
    /// # Cancel safety
    /// Dropping the future gives up what is held.
    pub async fn run(self, contenders: &dyn Contenders) -> Result<(), Violation> {
        let result = match self {
            Self::TakesFreeLock => holding::takes_free_lock(contenders).await,
            Self::RefusesSecond => holding::refuses_second(contenders).await,
            Self::ShowsHolder => holding::shows_holder(contenders).await,
            Self::NotReentrant => holding::not_reentrant(contenders).await,
            Self::ReleaseFrees => holding::release_frees(contenders).await,
            Self::StatusOnlyReads => holding::status_only_reads(contenders).await,
            Self::AcquisitionsDiffer => holding::acquisitions_differ(contenders).await,
            Self::DropFrees => holding::drop_frees(contenders).await,
            Self::HeldPastLease => holding::held_past_lease(contenders).await,
            Self::WaitGetsLock => waiting::gets_lock(contenders).await,
            Self::WaitEnds => waiting::ends(contenders).await,
            Self::DroppedWaitLeavesNothing => waiting::dropped_leaves_nothing(contenders).await,
            Self::DroppedAcquireLeavesNothing => waiting::cut_off_leaves_nothing(contenders).await,
            Self::BreakNeedsId => breaking::needs_id(contenders).await,
            Self::BrokenIsLost => breaking::broken_is_lost(contenders).await,
            Self::ReplacedIsLost => breaking::replaced_is_lost(contenders).await,
            Self::Excludes => contention::excludes(contenders).await,
        };
        result.map_err(|message| Violation {
            check: self,
            message,
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs every check and returns what was found wrong: nothing, if the lock
/// conforms.
///
/// # Cancel safety
/// Dropping the future gives up what is held.
pub async fn run(contenders: &dyn Contenders) -> Vec<Violation> {
    let mut violations = Vec::new();
    for check in Check::ALL {
        violations.extend(check.run(contenders).await.err());
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_listed_once() {
        let mut names: Vec<&str> = Check::ALL.iter().map(|check| check.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Check::ALL.len());
        // The last variant of the enum: one that is added but not listed shows.
        assert_eq!(Check::Excludes as usize + 1, Check::ALL.len());
    }
}
