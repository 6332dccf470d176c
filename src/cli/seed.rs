/// Returns a seed that differs from run to run, short enough to be typed.
pub(super) fn fresh_seed() -> u64 {
    let nanos = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs();
    u64::from(nanos ^ std::process::id()) % 1_000_000
}
