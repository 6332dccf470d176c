//! Replays the committed fuzz corpora, and bytes from a few seeds, without a
//! fuzzer.
#![cfg(feature = "arbitrary")]

use std::path::Path;

/// Runs `target` on each file of its corpus; returns how many there were.
fn replay(name: &str, target: fn(&[u8]) -> arbitrary::Result<()>) -> usize {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let mut files = 0;
    for entry in std::fs::read_dir(&corpus).expect("a corpus") {
        let path = entry.expect("an entry").path();
        println!("replaying {}", path.display());
        let data = std::fs::read(&path).expect("readable");
        // Bytes that end in the middle of a value end the run.
        let _ = target(&data);
        files += 1;
    }
    files
}

/// Returns bytes that depend on the seed alone (SplitMix64).
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 56) as u8
        })
        .collect()
}

#[test]
fn the_corpus_of_the_machine_passes() {
    assert!(replay("machine", snapshot_prepare::fuzz::machine) > 0);
}

#[test]
fn the_corpus_of_the_range_set_passes() {
    assert!(replay("range_set", snapshot_prepare::fuzz::range_set) > 0);
}

#[test]
fn events_made_from_bytes_pass() {
    for seed in 0..200 {
        println!("seed {seed}: bytes({seed}, 3000)");
        let _ = snapshot_prepare::fuzz::machine(&bytes(seed, 3000));
        let _ = snapshot_prepare::fuzz::range_set(&bytes(seed, 90));
    }
}
