use std::ops::RangeInclusive;

/// The most seeds of one call.
const MOST: u64 = 100_000_000;

/// Reads seeds: `7`, `1..100` (without 100) or `1..=100`.
pub(crate) fn parse_seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |part: &str| {
        part.parse::<u64>()
            .map_err(|_| format!("`{part}` is not a number; write seeds as 7, 1..100 or 1..=100"))
    };
    let seeds = match text.split_once("..") {
        None => {
            let seed = number(text)?;
            seed..=seed
        }
        Some((first, last)) => {
            let first = number(first)?;
            match last.strip_prefix('=') {
                Some(last) => first..=number(last)?,
                None => {
                    let end = number(last)?;
                    let last = end.checked_sub(1).ok_or("there is no seed before 0")?;
                    first..=last
                }
            }
        }
    };
    if seeds.is_empty() {
        return Err("there is no seed in this range".to_owned());
    }
    if seeds.end() - seeds.start() >= MOST {
        return Err(format!("these are more than {MOST} seeds"));
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range() {
        assert_eq!(parse_seeds("7"), Ok(7..=7));
        assert_eq!(parse_seeds("1..100"), Ok(1..=99));
        assert_eq!(parse_seeds("1..=100"), Ok(1..=100));
    }

    #[test]
    fn empty_and_wrong_ranges_are_refused() {
        for (text, part) in [
            ("5..5", "no seed in this range"),
            ("9..=3", "no seed in this range"),
            ("0..0", "before 0"),
            ("x", "`x` is not a number"),
            ("1..", "`` is not a number"),
            ("1..=y", "`y` is not a number"),
            ("0..=18446744073709551615", "more than"),
        ] {
            let message = parse_seeds(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
