use crate::lock::LockUrl;
use crate::lock::storage::{LockMode, raw};

/// Reads lock objects, their names, and the URLs of locks.
///
/// # Panics
/// Reading panics, or what was read is not what was written.
pub fn lock(data: &[u8]) {
    if let Ok(written) = raw::metadata(data) {
        // What we write is read as what it was, whoever wrote it first.
        let again = raw::metadata(&written);
        assert_eq!(again, Ok(written), "{:?}", String::from_utf8_lossy(data));
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(url) = text.parse::<LockUrl>() {
        let again = url.to_string().parse::<LockUrl>().ok();
        assert_eq!(again, Some(url), "{text:?}");
    }
    let (path, name) = text.split_once('\n').unwrap_or((&text, &text));
    for mode in [LockMode::Exclusive, LockMode::Read, LockMode::Write] {
        let seen = raw::member(path, mode, name);
        if mode == LockMode::Exclusive {
            // Whatever it is, an object of the family is in the way.
            assert!(seen.is_none_or(|(_, conflicts)| conflicts), "{text:?}");
        }
    }
}
