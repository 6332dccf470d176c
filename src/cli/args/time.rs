use std::time::Duration;

const EXAMPLES: &str = "write a whole number and a unit, such as 200ms, 120s, 5m or 1h";

/// Reads a time: a whole number and one of the units `ms`, `s`, `m`, `h`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(EXAMPLES.to_owned());
    }
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" => return Err(format!("the unit is missing; {EXAMPLES}")),
        _ => return Err(format!("`{unit}` is not a unit; {EXAMPLES}")),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(millis_per_unit))
        .map(Duration::from_millis)
        .ok_or_else(|| "the number is too large".to_owned())
}

/// Returns a time for people: `350 ms`, `1.25 s`, `3 min 20 s`.
pub(crate) fn show_time(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1_000 {
        format!("{millis} ms")
    } else if millis < 60_000 {
        format!("{:.2} s", time.as_secs_f64())
    } else {
        let seconds = time.as_secs();
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        for (text, millis) in [
            ("200ms", 200),
            ("120s", 120_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn wrong_times_say_what_to_write() {
        for (text, part) in [
            ("120", "unit is missing"),
            ("", "such as 200ms"),
            ("s", "such as 200ms"),
            ("-5s", "such as 200ms"),
            ("1.5s", "`.5s` is not a unit"),
            ("5 m", "` m` is not a unit"),
            ("10d", "`d` is not a unit"),
            ("99999999999999999999s", "too large"),
            ("18446744073709551615h", "too large"),
        ] {
            let message = parse_time(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn times_are_shown_in_fitting_units() {
        let shown = |millis| show_time(Duration::from_millis(millis));
        assert_eq!(shown(350), "350 ms");
        assert_eq!(shown(1_250), "1.25 s");
        assert_eq!(shown(200_999), "3 min 20 s");
    }
}
