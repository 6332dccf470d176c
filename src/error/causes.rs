use std::error::Error;

/// Returns the words of an error followed by those of all that caused it, each
/// said once.
pub(crate) fn with_causes(mut words: String, error: &(dyn Error + 'static)) -> String {
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        next = cause.source();
    }
    words
}
