//! Faults that are aimed at a phase: they wait until the run enters it.

use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Strike;
use crate::progress::PhaseName;
use crate::sim::fault::{FaultKind, log_uniform};
use crate::sim::model::Cluster;

/// How often an aimed fault tries to strike before it waits for the phase anew.
const TRIES: u32 = 12;

/// A fault that waits for a phase.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim::model) struct Aim {
    kind: FaultKind,
    phase: PhaseName,
    delay: Duration,
}

impl Cluster {
    /// Sets up the aimed faults of the plan.
    pub(super) fn schedule_aims(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed ^ 0x0061_696d);
        let round_trip = self.plan.timing.client_delay.as_micros() as u64 * 3;
        for (&(kind, phase), &count) in &self.plan.aims {
            // Some phases last for a moment only.
            let longest = match phase {
                PhaseName::Suspend | PhaseName::Verify | PhaseName::Release => round_trip,
                _ => 2_000_000,
            };
            for _ in 0..count {
                let delay = Duration::from_micros(log_uniform(&mut rng, 1, longest));
                self.triggers.aims.push(Aim { kind, phase, delay });
            }
        }
    }

    /// Lets the faults come that wait for the phase that begins now.
    pub(in crate::sim::model) fn phase_entered(&mut self) {
        let phase = self.phase;
        let mut due = Vec::new();
        self.triggers.aims.retain(|aim| {
            let is_due = aim.phase == phase;
            if is_due {
                due.push(*aim);
            }
            !is_due
        });
        for aim in due {
            self.strike_after(aim.delay, Strike::Aimed(aim, TRIES));
        }
    }

    /// Strikes if the phase is still the right one; if nothing fits, soon again.
    pub(super) fn strike_aimed(&mut self, aim: Aim, tries: u32) {
        if self.triggers.stopped {
            return;
        }
        if self.phase != aim.phase || tries == 0 {
            self.triggers.aims.push(aim);
            return;
        }
        let begun = if aim.kind == FaultKind::ClientPause {
            self.begin_pause()
        } else {
            self.begin(aim.kind)
        };
        if begun {
            self.history.struck(aim.kind, self.phase);
        } else if !aim.kind.waits_for_finish() {
            let again = aim.delay.clamp(
                Duration::from_micros(50),
                Duration::from_millis(u64::from(TRIES - tries + 1)),
            );
            self.strike_after(again, Strike::Aimed(aim, tries - 1));
        }
    }

    /// Whoever runs the client is to pause it.
    fn begin_pause(&mut self) -> bool {
        let lasting = log_uniform(&mut self.rng, 10_000, 300_000_000);
        self.pauses.push_back(Duration::from_micros(lasting));
        true
    }
}
