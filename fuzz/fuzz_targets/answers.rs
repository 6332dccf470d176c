#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Bytes that make no run are not worth keeping either.
    let _ = snapshot_prepare::fuzz::answers(data);
});
