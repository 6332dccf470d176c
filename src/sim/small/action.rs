use super::bounds::Fault;

/// Something that can happen in a small cluster, or on the way between it and
/// the machine. Stores and regions go by their ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Action {
    /// A store or PD takes in a call and answers as things are now; the answer
    /// is on its way.
    Serve(usize),
    /// The answer to a call arrives, and is made first where it is not yet.
    Answer(usize),
    /// PD's answer to a scan leaves out the region at this place.
    AnswerWithGap(usize, u8),
    /// PD's answer to a scan knows no leader of the region at this place.
    AnswerLeaderless(usize, u8),
    /// A call fails.
    Fail(usize),
    /// A store refuses a read, being busy.
    RefuseRead(usize),
    /// A stream's connection stands.
    Open(u64),
    /// A dial fails.
    FailDial(u64),
    /// A store takes in the next request of the present stream.
    ServeStream(u64),
    /// A store refuses the next wait of the present stream, being busy.
    RefuseWait(u64),
    /// The next message of the present stream arrives, and the next request is
    /// served first when there is none.
    Deliver(u64),
    /// The next message of a stream that the machine has closed arrives.
    DeliverLate(u64, usize),
    /// Time passes until the machine's next deadline.
    Timeout,
    /// Our process stands still for longer than a lease.
    Pause,
    /// The leader's log reaches the other peers.
    Commit(u8),
    /// The leader applies what is committed.
    Apply(u8),
    /// A peer is elected.
    Elect(u8, u64),
    /// The leader is cut off and another peer elected.
    CutOff(u8, u64),
    /// The leader that was cut off is one of the others again.
    Heal(u8),
    /// The second step of a merge.
    CommitMerge(u8),
    /// A leader proposes something that leases refuse.
    Propose(u8, Fault),
    /// A store restarts.
    Restart(u64),
    /// The present stream to a store breaks.
    Cut(u64),
    /// Another client opens a stream to a store.
    Rival(u64),
    /// The same, and it lifts the lease there and takes one of its own.
    RivalLease(u64),
    /// A lease is lifted by a late Finish of another client.
    LiftLease(u64),
    /// PD's view stands still from now on.
    FreezePd,
    /// PD's view is as things are again.
    ThawPd,
    /// The owner has its snapshots.
    Finish,
    /// The owner wants out.
    Cancel,
    /// The lock that guards the run is lost.
    LoseLock,
}

impl Action {
    /// Returns which fault it is, if it is one.
    pub const fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::AnswerWithGap(..) => Fault::PdGap,
            Self::AnswerLeaderless(..) => Fault::PdLeaderless,
            Self::Fail(_) => Fault::CallFailed,
            Self::RefuseRead(_) | Self::RefuseWait(_) => Fault::Busy,
            Self::FailDial(_) => Fault::DialFailed,
            Self::DeliverLate(..) => Fault::Late,
            Self::Pause => Fault::Pause,
            Self::Elect(..) => Fault::Election,
            Self::CutOff(..) => Fault::CutOff,
            Self::Propose(_, kind) => kind,
            Self::Restart(_) => Fault::Restart,
            Self::Cut(_) => Fault::StreamCut,
            Self::Rival(_) | Self::RivalLease(_) => Fault::Rival,
            Self::LiftLease(_) => Fault::LeaseLifted,
            Self::FreezePd => Fault::PdLag,
            Self::Cancel => Fault::Cancel,
            Self::LoseLock => Fault::LockLost,
            _ => return None,
        })
    }
}
