use super::context::Contenders;
use super::{breaking, contention, holding, waiting};
use crate::conformance::checks;

checks! {
    /// One part of the contract of a [`RunLock`](crate::lock::RunLock). A check
    /// starts from and leaves behind a free lock, so that any one can run alone.
    pub enum Check {
        /// A free lock is taken at once, is held, and status shows its holder alone.
        TakesFreeLock => "takes_free_lock",
        /// Who comes second is refused at once and told who holds the lock.
        RefusesSecond => "refuses_second",
        /// Others see of the holder what it says of itself.
        ShowsHolder => "shows_holder",
        /// The same value cannot take the lock twice.
        NotReentrant => "not_reentrant",
        /// A release says so, and the lock can be taken again.
        ReleaseFrees => "release_frees",
        /// Status changes nothing, on a free lock and on a held one.
        StatusOnlyReads => "status_only_reads",
        /// Each acquisition has an id of its own; fencing numbers grow.
        AcquisitionsDiffer => "acquisitions_differ",
        /// A guard that is dropped frees the lock by and by.
        DropFrees => "drop_frees",
        /// A lock that is held is held past the lease it was granted first: it is
        /// renewed. Says nothing on a lock that does not expire.
        HeldPastLease => "held_past_lease",
        /// Who waits gets the lock when it becomes free.
        WaitGetsLock => "wait_gets_lock",
        /// Who waits in vain is refused when the time is up, and leaves nothing.
        WaitEnds => "wait_ends",
        /// Who gives up waiting leaves nothing behind.
        DroppedWaitLeavesNothing => "dropped_wait_leaves_nothing",
        /// Who gives up an acquisition that was begun leaves nothing behind, however
        /// far it had come.
        DroppedAcquireLeavesNothing => "dropped_acquire_leaves_nothing",
        /// Breaking needs the id of the one who holds the lock.
        BreakNeedsId => "break_needs_id",
        /// A lock that was broken is lost, for good, and is gone at its release.
        BrokenIsLost => "broken_is_lost",
        /// A lock that somebody else has now is lost, and left to the other.
        ReplacedIsLost => "replaced_is_lost",
        /// Many contenders, again and again: never two at once, everybody wins.
        Excludes => "excludes",
    }
}

impl Check {
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
