/// Returns the most memory, in bytes, that this process ever had at once; `None`
/// where the system does not tell.
pub(super) fn peak() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_high_water_mark() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t    12 kB\nVmRSS:\t 3 kB\n";
        assert_eq!(peak_in(status), Some(12_288));
        assert_eq!(peak_in("VmHWM:\t12 pages\n"), None);
        assert_eq!(peak_in(""), None);
    }
}
