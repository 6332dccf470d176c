#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    snapshot_prepare::fuzz::lock(data);
});
