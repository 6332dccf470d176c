use std::ops::RangeInclusive;

/// The most seeds of one call.
const MOST: u64 = 100_000_000;
const FORMS: &str = "write 7 for one seed, 1..100 for all from 1 to 100, or 1+100 for a hundred \
                     from 1 on";

/// Reads seeds: `7`, `1..100` (both ends included, as is `1..=100`), or `1+100`
/// for a hundred seeds from 1 on.
pub(crate) fn parse_seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |part: &str| {
        let part = part.trim();
        let number = part.parse::<u64>();
        number.map_err(|_| format!("`{part}` is not a number; {FORMS}"))
    };
    let seeds = if let Some((first, count)) = text.split_once('+') {
        let first = number(first)?;
        let more = number(count)?.checked_sub(1);
        let more = more.ok_or("there is no seed in this range")?;
        first..=first.checked_add(more).ok_or("there are no such seeds")?
    } else if let Some((first, last)) = text.split_once("..") {
        number(first)?..=number(last.strip_prefix('=').unwrap_or(last))?
    } else {
        let seed = number(text)?;
        seed..=seed
    };
    if seeds.is_empty() {
        return Err("there is no seed in this range".to_owned());
    }
    if seeds.end() - seeds.start() >= MOST {
        return Err(format!("these are more than {MOST} seeds"));
    }
    Ok(seeds)
}

/// Reads a size, or a range of sizes with both ends included, from 1 to `most`.
fn parse_sizes(text: &str, most: u32) -> Result<RangeInclusive<u32>, String> {
    let number = |part: &str| {
        let number = part.trim().parse::<u32>().ok();
        let number = number.filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| format!("`{part}` is no number from 1 to {most}; write 5 or 2..8"))
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (first, last.strip_prefix('=').unwrap_or(last)),
        None => (text, text),
    };
    let sizes = number(first)?..=number(last)?;
    if sizes.is_empty() {
        return Err("the first number is larger than the second".to_owned());
    }
    Ok(sizes)
}

/// Reads how many stores.
pub(crate) fn parse_stores(text: &str) -> Result<RangeInclusive<u32>, String> {
    parse_sizes(text, 1_000)
}

/// Reads how many regions.
pub(crate) fn parse_regions(text: &str) -> Result<RangeInclusive<u32>, String> {
    parse_sizes(text, 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range_or_a_count() {
        assert_eq!(parse_seeds("7"), Ok(7..=7));
        assert_eq!(parse_seeds("1..100"), Ok(1..=100));
        assert_eq!(parse_seeds("1..=100"), Ok(1..=100));
        assert_eq!(parse_seeds("5..5"), Ok(5..=5));
        assert_eq!(parse_seeds("11+10"), Ok(11..=20));
        assert_eq!(parse_seeds("0+1"), Ok(0..=0));
    }

    #[test]
    fn empty_and_wrong_ranges_are_refused() {
        for (text, part) in [
            ("9..3", "no seed in this range"),
            ("9..=3", "no seed in this range"),
            ("9+0", "no seed in this range"),
            ("x", "`x` is not a number"),
            ("1..", "`` is not a number"),
            ("1..=y", "`y` is not a number"),
            ("1+y", "`y` is not a number"),
            ("18446744073709551615+2", "no such seeds"),
            ("0..=18446744073709551615", "more than"),
        ] {
            let message = parse_seeds(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn sizes_are_one_or_a_range() {
        assert_eq!(parse_stores("5"), Ok(5..=5));
        assert_eq!(parse_stores("2..8"), Ok(2..=8));
        assert_eq!(parse_regions("1..=1000000"), Ok(1..=1_000_000));
        for (text, part) in [
            ("0", "from 1 to 1000"),
            ("8..2", "larger than the second"),
            ("2..", "from 1 to 1000"),
            ("1001", "from 1 to 1000"),
            ("many", "from 1 to 1000"),
        ] {
            let message = parse_stores(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
