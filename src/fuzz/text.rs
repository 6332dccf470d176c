use crate::cli::parse;
use crate::tikv::raw;

/// Reads what users type: times, endpoints, seeds; and addresses as PD names
/// them.
///
/// # Panics
/// Reading panics, or what was read is not what was written.
pub fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(time) = parse::time(&text) {
        let again = format!("{}ms", time.as_millis());
        assert_eq!(parse::time(&again), Ok(time), "{text:?}");
    }
    if let Ok(seeds) = parse::seeds(&text) {
        assert!(!seeds.is_empty(), "{text:?}");
        let again = format!("{}..={}", seeds.start(), seeds.end());
        assert_eq!(parse::seeds(&again), Ok(seeds), "{text:?}");
    }
    let address = raw::address(&text);
    if let Ok((_, authority)) = &address {
        // What was read can be read again, and is the same place.
        let again = raw::address(authority).map(|(_, authority)| authority);
        assert_eq!(again.as_ref(), Ok(authority), "{text:?}");
    }
    if parse::endpoint(&text).is_ok() {
        // What the program lets through is not refused behind it.
        assert!(address.is_ok(), "{text:?}: {address:?}");
    }
}
