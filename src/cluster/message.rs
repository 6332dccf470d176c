use crate::region::{WaitAnswer, WaitTarget};

/// What is sent on a prepare stream.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StreamRequest {
    /// Takes or renews the store's lease.
    UpdateLease {
        /// How long it shall run, in whole seconds.
        seconds: u64,
    },
    /// Asks to be told when each region's peer on the store has applied what is
    /// in its log now.
    WaitApply {
        /// The regions; never the same one twice.
        regions: Vec<WaitTarget>,
    },
    /// Ends the lease; the store answers once more and ends the stream.
    Finish,
}

/// What comes back on a prepare stream.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StreamAnswer {
    /// The answer to `UpdateLease`, and to `Finish`, in the order in which they
    /// were sent.
    LeaseUpdated {
        /// Whether the lease had been in force until now.
        last_lease_is_valid: bool,
    },
    /// The answer for one region of a `WaitApply`, in any order.
    WaitApplyDone(WaitAnswer),
}
