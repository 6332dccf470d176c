/// Something that has to happen somewhere in the space, or the model shows less
/// than it seems to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Sight {
    /// A hold was reached.
    Held,
    /// A hold was reached by a later attempt.
    HeldLater,
    /// A hold was reached although faults had struck.
    HeldDespiteFaults,
    /// An attempt ended in doubt and another one followed.
    Doubt,
    /// The hold was lost to doubt.
    LostInHold,
    /// A verification found a difference, and something was asked again.
    Difference,
    /// Another client took over before the hold.
    Superseded,
    /// Another client took over in the hold.
    SupersededInHold,
    /// The claim of a leader that was cut off was refuted by the read.
    ClaimRefuted,
    /// A wait was confirmed by a leader that was cut off, or by a follower.
    ConfirmedByOther,
    /// A wait was refused since an earlier one goes on.
    Duplicated,
    /// A store refused a wait since no lease was in force.
    WaitWithoutLease,
    /// A merge begun before the leases was committed under them.
    MergedUnderLease,
    /// A command proposed before the leases was applied under them.
    AppliedUnderLease,
    /// A command proposed before the leases was lost under them.
    LostUnderLease,
    /// A renewal was answered 'not valid'.
    NotValid,
    /// Cancelled in each phase.
    CancelledInConnect,
    /// See [`Sight::CancelledInConnect`].
    CancelledInSuspend,
    /// See [`Sight::CancelledInConnect`].
    CancelledInWaitApply,
    /// See [`Sight::CancelledInConnect`].
    CancelledInVerify,
    /// See [`Sight::CancelledInConnect`].
    CancelledInHold,
    /// See [`Sight::CancelledInConnect`].
    CancelledInRelease,
    /// The end was good.
    FinishedWell,
    /// The end was asked for, and not every store could say that it was leased.
    FinishedInDoubt,
    /// A store said at the end that its lease had lapsed.
    FinishedLapsed,
    /// An answer came too late to count.
    Late,
}

impl Sight {
    /// Every sight, with the words for it.
    pub const ALL: [(Self, &'static str); 26] = [
        (Self::Held, "a hold was reached"),
        (Self::HeldLater, "a hold was reached by a later attempt"),
        (Self::HeldDespiteFaults, "a hold was reached despite faults"),
        (Self::Doubt, "an attempt ended in doubt"),
        (Self::LostInHold, "a lease was lost in the hold"),
        (Self::Difference, "a verification found a difference"),
        (Self::Superseded, "superseded before the hold"),
        (Self::SupersededInHold, "superseded in the hold"),
        (
            Self::ClaimRefuted,
            "the claim of a leader that was cut off was refuted by the read",
        ),
        (
            Self::ConfirmedByOther,
            "a wait was confirmed by a peer that does not lead",
        ),
        (Self::Duplicated, "a wait was refused as a duplicate"),
        (Self::WaitWithoutLease, "a wait met a store without a lease"),
        (
            Self::MergedUnderLease,
            "a merge begun before the leases was committed under them",
        ),
        (
            Self::AppliedUnderLease,
            "a command proposed before the leases was applied under them",
        ),
        (
            Self::LostUnderLease,
            "a command proposed before the leases was lost under them",
        ),
        (Self::NotValid, "a renewal was answered 'not valid'"),
        (Self::CancelledInConnect, "cancelled in Connect"),
        (Self::CancelledInSuspend, "cancelled in Suspend"),
        (Self::CancelledInWaitApply, "cancelled in WaitApply"),
        (Self::CancelledInVerify, "cancelled in Verify"),
        (Self::CancelledInHold, "cancelled in Hold"),
        (Self::CancelledInRelease, "cancelled in Release"),
        (Self::FinishedWell, "finished well"),
        (
            Self::FinishedInDoubt,
            "finished, and it cannot be said that it held",
        ),
        (Self::FinishedLapsed, "finished, and a lease had lapsed"),
        (Self::Late, "an answer came too late"),
    ];
}

/// A set of sights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sights(u32);

impl Sights {
    pub(super) const fn see(&mut self, sight: Sight) {
        self.0 |= 1 << sight as u32;
    }

    /// Returns whether `sight` is among them.
    pub const fn has(self, sight: Sight) -> bool {
        self.0 & (1 << sight as u32) != 0
    }
}
