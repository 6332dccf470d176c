use super::bounds::{Bounds, Fault};

/// Returns the spaces that together have to show every [`Sight`](super::Sight):
/// most of a million states, some minutes in a release build.
pub fn suite() -> Vec<Bounds> {
    let mut suite = quick();
    suite.extend([
        // Elections to and fro, with a command that may be lost or not.
        Bounds {
            stores: 3,
            regions: 1,
            faults: 2,
            kinds: vec![Fault::Election],
            timeouts: 0,
            open_command: true,
            ..Bounds::default()
        },
        // One fault of any kind, also leaders that are cut off.
        Bounds {
            stores: 3,
            timeouts: 0,
            ..Bounds::default()
        },
    ]);
    suite
}

/// Returns the smaller ones of these spaces, those with two stores.
pub fn quick() -> Vec<Bounds> {
    vec![
        // One fault of any kind.
        Bounds {
            timeouts: 0,
            ..Bounds::default()
        },
        // A second attempt, with what the first one left behind.
        Bounds {
            regions: 1,
            faults: 2,
            each: 1,
            kinds: vec![Fault::Ingest, Fault::StreamCut, Fault::Late],
            timeouts: 1,
            ..Bounds::default()
        },
    ]
}
