#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Bytes that end in the middle of a value end the run.
    let _ = snapshot_prepare::fuzz::range_set(data);
});
