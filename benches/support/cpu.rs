//! Processor time, which other processes on the machine disturb less than the
//! time on the wall.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Runs `work`; returns what it returns and the processor time that this thread
/// spent on it.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = now(ClockId::ThreadCPUTime);
    let result = work();
    (result, now(ClockId::ThreadCPUTime).saturating_sub(before))
}

/// Runs `work`; returns the processor time that all threads of this process
/// spent meanwhile, in the program and in the system for it.
pub(crate) fn timed_process(work: impl FnOnce()) -> Duration {
    let before = now(ClockId::ProcessCPUTime);
    work();
    now(ClockId::ProcessCPUTime).saturating_sub(before)
}

fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Runs the contenders in turns, `rounds` times; returns the least time of each.
pub(crate) fn least<const N: usize>(
    rounds: usize,
    mut contenders: [&mut dyn FnMut(); N],
) -> [Duration; N] {
    let mut least = [Duration::MAX; N];
    for _ in 0..rounds {
        for (contender, least) in contenders.iter_mut().zip(&mut least) {
            *least = timed(contender).1.min(*least);
        }
    }
    least
}
