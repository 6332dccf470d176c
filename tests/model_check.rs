//! The exhaustive model of small clusters, as far as that is quick; the example
//! `model_check` goes further.
#![cfg(feature = "sim")]

use std::collections::BTreeSet;

use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::sim::explore::Limits;
use snapshot_prepare::sim::small::{Bounds, Sight, SmallCluster, quick};

/// What takes three stores to be seen.
const THREE: [Sight; 2] = [Sight::ClaimRefuted, Sight::LostUnderLease];

#[test]
fn no_rule_is_broken_and_everything_is_seen() {
    let mut unseen: Option<BTreeSet<String>> = None;
    for bounds in quick() {
        println!("{bounds}");
        let report = SmallCluster::new(bounds).explorer().run(&Limits::default());
        println!("{report}");
        assert!(report.violation.is_none(), "{report}");
        assert!(report.is_complete && report.states > 1_000, "{report}");
        let here: BTreeSet<_> = report.unseen().map(str::to_owned).collect();
        unseen = Some(match unseen {
            None => here,
            Some(before) => before.intersection(&here).cloned().collect(),
        });
    }
    let three = Sight::ALL
        .iter()
        .filter(|(sight, _)| THREE.contains(sight))
        .map(|(_, words)| (*words).to_owned());
    assert_eq!(unseen, Some(three.collect()), "not seen, and not excused");
}

#[test]
fn a_violation_tells_a_way_that_can_be_gone_again() {
    let bounds = Bounds {
        regions: 1,
        faults: 0,
        timeouts: 0,
        ..Bounds::default()
    };
    let explorer = SmallCluster::new(bounds)
        .explorer()
        .always("it never holds", |small| {
            if small.phase() == PhaseName::Hold {
                Err("it holds".to_owned())
            } else {
                Ok(())
            }
        });
    let report = explorer.run(&Limits::default());
    let trail = report.violation.as_ref().expect("a violation");
    assert_eq!(trail.property, "it never holds");
    let path: Vec<_> = trail.steps.iter().map(|step| step.index).collect();
    let (steps, state) = explorer.replay(&path).expect("the same way");
    assert_eq!(steps, trail.steps);
    assert_eq!(
        explorer.violated(&state),
        Some(("it never holds", "it holds".to_owned()))
    );
    let text = report.to_string();
    assert!(text.contains("replay: 0."), "{text}");
    assert!(explorer.replay(&[0, 99]).is_err());
}

#[test]
fn limits_end_an_exploration_that_is_not_complete() {
    let explorer = SmallCluster::new(Bounds::default()).explorer();
    let limits = Limits {
        states: 500,
        ..Limits::default()
    };
    let report = explorer.run(&limits);
    assert!(!report.is_complete && report.states == 500, "{report}");
    let limits = Limits {
        depth: 3,
        ..Limits::default()
    };
    let report = explorer.run(&limits);
    assert!(!report.is_complete && report.depth == 3, "{report}");
}
