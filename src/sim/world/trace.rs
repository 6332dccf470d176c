use std::collections::VecDeque;
use std::fmt::{self, Debug, Write};

use crate::time::Timestamp;

/// The most steps that a trace keeps.
const STEPS_MAX: usize = 400;

/// A number that stands for all steps, and, where wanted, the last ones as text.
#[derive(Debug)]
pub(super) struct Trace {
    hash: Fnv,
    steps: Option<VecDeque<String>>,
    frozen: bool,
}

impl Trace {
    pub(super) fn new(keeps_steps: bool) -> Self {
        Self {
            hash: Fnv(0xcbf2_9ce4_8422_2325),
            steps: keeps_steps.then(VecDeque::new),
            frozen: false,
        }
    }

    pub(super) fn step(&mut self, now: Timestamp, what: &dyn Debug) {
        // Writing into a number or a string cannot fail.
        let _ = write!(self.hash, "{}{what:?}", now.as_micros());
        if let Some(steps) = &mut self.steps
            && !self.frozen
        {
            if steps.len() >= STEPS_MAX {
                steps.pop_front();
            }
            let mut text = format!("{now} {what:?}");
            if text.len() > 600 {
                text = text.chars().take(600).collect();
                text.push('…');
            }
            steps.push_back(text);
        }
    }

    /// Keeps the steps up to now: what matters has happened.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.0
    }

    pub(super) fn into_steps(self) -> Vec<String> {
        self.steps.map(Vec::from).unwrap_or_default()
    }
}

/// The hash FNV-1a: the same on every machine and in every version.
#[derive(Debug)]
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 ^= u64::from(byte);
            self.0 = self.0.wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}
