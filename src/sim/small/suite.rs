use super::bounds::{Bounds, Fault};
use crate::machine::Proof;

/// Returns the spaces that together have to show every [`Sight`](super::Sight):
/// more than a million states, some minutes in a release build.
pub fn suite() -> Vec<Bounds> {
    let mut suite = quick();
    suite.extend([
        // A leader that is cut off, with a command that only it has.
        Bounds {
            stores: 3,
            regions: 1,
            kinds: vec![Fault::CutOff],
            timeouts: 0,
            open_command: true,
            ..Bounds::default()
        },
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
        // One fault of any kind and one deadline.
        Bounds {
            regions: 1,
            timeouts: 1,
            ..Bounds::default()
        },
        // One fault of any kind with three stores.
        Bounds {
            stores: 3,
            timeouts: 0,
            ..Bounds::default()
        },
        // What the proof by claims has to see by itself.
        Bounds {
            faults: 2,
            kinds: claims_kinds(),
            timeouts: 0,
            proof: Proof::Claims,
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
        // The proof by claims has no read that refuses a merging region.
        Bounds {
            kinds: claims_kinds(),
            timeouts: 0,
            proof: Proof::Claims,
            ..Bounds::default()
        },
    ]
}

/// What may happen where no leader is cut off.
fn claims_kinds() -> Vec<Fault> {
    vec![
        Fault::Ingest,
        Fault::Split,
        Fault::Merge,
        Fault::Election,
        Fault::PdLag,
    ]
}
