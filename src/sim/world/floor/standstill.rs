use std::fmt;
use std::time::Duration;

/// The least time for which the stores could have been suspended in a run, and
/// the time for which they were: how much of a standstill is the client's doing.
///
/// # What is compared
/// From the first `UpdateLease` handed out to the last `Finish` answered, less
/// the time from the hold's begin to the request to end it, which is the
/// caller's. Only runs that finished well in their first attempt have a floor.
///
/// # The floor
/// It is made of the answers that such a run cannot do without, each as long as
/// it took in this very run, from the effect handed out to its event: so the
/// draws of the model (delays, slow applies, stores in trouble) are on both
/// sides, and what is above the floor is time in which nothing of that was
/// waited for. With
///
/// - `lease(s)`: the first `UpdateLease` of store `s`,
/// - `wait(r)`, `read(r)`: the wait and the read of region `r` that proved it
///   (the last ones that succeeded; a wait lasts until the region has applied),
/// - `prove(r)`: the time until region `r` can be proven: `wait(r)` and then
///   `read(r)`. Where the region changed while it was asked for, not before: a
///   wait for an epoch counts from the instant at which the leader that gave the
///   proof had come to that epoch, and a read is served only once that leader,
///   newly elected, had committed something of its own term; nor is a region
///   asked again before the delay is over with which its store refused
///   (`server_is_busy`). So what a cluster cannot give to anybody is not the
///   client's doing,
/// - `ask(s)`: the slowest `prove(r)` among the regions of `s`, or
///   all its waits (or reads) packed into a full window without a gap, the sum
///   over its regions divided by the window, whichever is longer,
/// - `list(s)`: the last listing of claims of `s` before the hold,
/// - `renew(s)`: the last renewal of `s` answered before the hold,
/// - `finish(s)`: the `Finish` of `s`,
///
/// it is the sum of
///
/// 1. the slowest `lease(s)`: no store is asked before all are leased,
/// 2. the longer of: the slowest `ask(s) + list(s)`; the slowest `ask(s)` and,
///    after it, the slowest `renew(s)`. A listing counts when it was begun after
///    the proof of what it lists, the renewals after the last proof of all; the
///    two can go on at the same time,
/// 3. the slowest `finish(s)`.
///
/// Failed waits and reads, backoffs, looks at PD, second listings, and pauses of
/// the client are no part of it. No run can be below its floor, and that is a
/// test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Standstill {
    /// What it took, the hold itself left out.
    pub took: Duration,
    /// The least possible.
    pub floor: Duration,
    /// The same by part, in order.
    pub parts: [Share; 4],
}

/// A part of a standstill.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Share {
    /// What it took.
    pub took: Duration,
    /// The least possible.
    pub floor: Duration,
}

impl Standstill {
    /// The names of the parts.
    pub const PARTS: [&str; 4] = ["lease", "prove", "verify", "release"];

    /// Returns how many times the floor it took, in thousandths.
    pub fn per_mille(&self) -> u64 {
        ratio(self.took, self.floor)
    }
}

/// Returns `took` in thousandths of `floor`; 1000 when both are nothing.
pub(in crate::sim::world) fn ratio(took: Duration, floor: Duration) -> u64 {
    let (took, floor) = (took.as_micros(), floor.as_micros());
    let per_mille = match took.saturating_mul(1_000).checked_div(floor) {
        Some(per_mille) => per_mille,
        None if took == 0 => 1_000,
        None => u128::MAX,
    };
    u64::try_from(per_mille).unwrap_or(u64::MAX)
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.per_mille();
        let (whole, rest) = (times / 1_000, times % 1_000 / 10);
        write!(
            f,
            "{whole}.{rest:02} of the floor, {:?} of {:?}:",
            self.took, self.floor
        )?;
        for (name, share) in Self::PARTS.iter().zip(&self.parts) {
            write!(f, " {name} {:?} of {:?}", share.took, share.floor)?;
        }
        Ok(())
    }
}
