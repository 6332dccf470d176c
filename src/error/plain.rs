/// Shows control characters as escapes, so that what others wrote cannot break a
/// line, nor move a terminal's cursor.
pub(crate) fn without_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_colors_of_others_are_escapes() {
        assert_eq!(
            without_controls("a\nb\u{1b}[31m\u{9b}ü"),
            "a\\nb\\u{1b}[31m\\u{9b}ü"
        );
    }
}
