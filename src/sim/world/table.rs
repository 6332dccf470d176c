//! A summary as tables for people.

use std::fmt;
use std::time::Duration;

use super::summary::percentile;
use super::{Standstill, Summary};
use crate::progress::PhaseName;

/// The phases in which faults are counted, in order.
const PHASES: [PhaseName; 7] = [
    PhaseName::Connect,
    PhaseName::Suspend,
    PhaseName::WaitApply,
    PhaseName::Verify,
    PhaseName::Hold,
    PhaseName::Release,
    PhaseName::Closed,
];

impl fmt::Display for Summary {
    /// A few tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}\n")?;
        }
        self.write_strikes(f)?;
        self.write_outcomes(f)?;
        self.write_times(f)?;
        writeln!(f, "hash of all runs: {:016x}", self.hash)?;
        write!(f, "{} runs violated a property", self.violated)
    }
}

impl Summary {
    fn write_outcomes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs, {} with a hold; they ended:",
            self.runs, self.held
        )?;
        for (ended, count) in &self.outcomes {
            let percent = *count as f64 * 100.0 / self.runs.max(1) as f64;
            writeln!(f, "  {:<32} {count:>9} {percent:>6.2} %", ended.to_string())?;
        }
        Ok(())
    }

    fn write_strikes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.strikes.is_empty() {
            return Ok(());
        }
        write!(f, "{:<18} {:>9}", "faults that struck", "in all")?;
        for phase in PHASES {
            write!(f, " {:>10}", phase.as_str())?;
        }
        writeln!(f)?;
        for (kind, count) in self.strikes_by_kind() {
            write!(f, "  {:<16} {count:>9}", kind.as_str())?;
            for phase in PHASES {
                match self.strikes.get(&(kind, phase)) {
                    Some(count) => write!(f, " {count:>10}")?,
                    None => write!(f, " {:>10}", "-")?,
                }
            }
            writeln!(f)?;
        }
        writeln!(f)
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, values) in [
            ("from the start to the hold", &self.prepared),
            ("suspended, with the hold", &self.suspended),
        ] {
            if !values.is_empty() {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let [median, high, most] = [50, 99, 100].map(|p| percentile(&sorted, p));
                writeln!(
                    f,
                    "{what}: median {}, 99 % {}, most {}",
                    Millis(median),
                    Millis(high),
                    Millis(most)
                )?;
            }
        }
        let Some(sums) = self.standstill() else {
            return Ok(());
        };
        writeln!(
            f,
            "suspended, without the hold, against the floor ({} runs): median {}, 99 % {}, worst {} (seed {})",
            sums.runs,
            Times(sums.median),
            Times(sums.high),
            Times(sums.worst),
            sums.worst_seed
        )?;
        f.write_str("  by part, over all runs:")?;
        for (name, share) in Standstill::PARTS.iter().zip(&sums.parts) {
            let took = Millis(share.took / u32::try_from(sums.runs).unwrap_or(u32::MAX).max(1));
            write!(f, " {name} {} (mean {took})", Times(share.per_mille()))?;
        }
        writeln!(f)
    }
}

/// A ratio in thousandths.
struct Times(u64);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
    }
}
