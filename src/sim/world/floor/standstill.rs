use std::fmt;
use std::time::Duration;

/// How long the stores of a run were suspended on the client's account, and the
/// least that would have done; see the [module](super).
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
