//! Replays the committed fuzz corpora, and bytes from a few seeds, without a
//! fuzzer.
#![cfg(feature = "arbitrary")]

use std::path::Path;

use snapshot_prepare::fuzz;
use snapshot_prepare::fuzz::play::Sometimes;

/// Runs `target` on each file of its corpus; returns how many there were.
fn replay(name: &str, mut target: impl FnMut(&[u8])) -> usize {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let mut files = 0;
    for entry in std::fs::read_dir(&corpus).expect("a corpus") {
        let path = entry.expect("an entry").path();
        println!("replaying {}", path.display());
        target(&std::fs::read(&path).expect("readable"));
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

/// The corpus reaches all that is worth reaching, so the fuzzer starts there.
#[test]
fn the_corpus_of_the_machine_passes() {
    let mut sometimes = Sometimes::default();
    let files = replay("machine", |data| {
        if let Ok(seen) = fuzz::machine(data) {
            sometimes.add(&seen);
        }
    });
    for (what, count) in sometimes.iter() {
        println!("{count:6} {what}");
    }
    assert!(files > 0);
    for what in Sometimes::WANTED {
        assert!(sometimes.count_of(what) > 0, "no seed reaches: {what}");
    }
}

#[test]
fn the_corpus_of_the_range_set_passes() {
    let files = replay("range_set", |data| {
        // Bytes that end in the middle of a value end the run.
        let _ = fuzz::range_set(data);
    });
    assert!(files > 0);
}

#[test]
fn runs_made_from_bytes_pass() {
    for seed in 0..200 {
        println!("seed {seed}: bytes({seed}, 3000)");
        let _ = fuzz::machine(&bytes(seed, 3000));
        let _ = fuzz::range_set(&bytes(seed, 90));
    }
}

/// Bytes of servers lead to a hold, also those that were changed on the way, and
/// those that mean nothing lead to a failure.
#[cfg(feature = "tikv")]
#[test]
fn the_corpus_of_the_answers_passes() {
    let mut sometimes = Sometimes::default();
    let files = replay("answers", |data| {
        if let Ok(seen) = fuzz::answers(data) {
            sometimes.add(&seen);
        }
    });
    for (what, count) in sometimes.iter() {
        println!("{count:6} {what}");
    }
    assert!(files > 0);
    for what in [
        "hold",
        "finished",
        "attempt failed",
        "failed: Unauthenticated",
    ] {
        assert!(sometimes.count_of(what) > 0, "no seed reaches: {what}");
    }
    for seed in 0..200 {
        println!("seed {seed}: bytes({seed}, 1000)");
        let _ = fuzz::answers(&bytes(seed, 1000));
    }
}

#[cfg(feature = "sim")]
#[test]
fn the_corpus_of_the_layouts_passes() {
    let (mut read, mut files) = (0, 0);
    files += replay("layout", |data| read += usize::from(fuzz::layout(data)));
    println!("{read} of {files} are layouts");
    assert!(read > 0 && read < files);
}

#[cfg(feature = "cli")]
#[test]
fn the_corpus_of_texts_passes() {
    assert!(replay("text", fuzz::text) > 0);
}

#[cfg(feature = "lock-storage")]
#[test]
fn the_corpus_of_locks_passes() {
    assert!(replay("lock", fuzz::lock) > 0);
}
