//! Whole runs in virtual time, judged by the oracle.
#![cfg(feature = "sim")]

use std::time::Duration;

use snapshot_prepare::machine::Proof;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::sim::fault::{FaultKind, FaultLevel, Timing};
use snapshot_prepare::sim::world::{
    Ended, Options, Setup, Sizes, Summary, run, run_seed, simulate,
};

fn seeds(level: FaultLevel, count: u64) -> Summary {
    let from = match std::env::var("SIMULATE_FROM") {
        Ok(from) => from.parse().expect("SIMULATE_FROM is a number"),
        Err(_) => 0,
    };
    let count = match std::env::var("SIMULATE_COUNT") {
        Ok(count) => count.parse().expect("SIMULATE_COUNT is a number"),
        Err(_) => count,
    };
    let options = Options {
        seeds: from..=from + count - 1,
        level,
        ..Options::default()
    };
    let summary = simulate(&options, |_| true);
    println!("{level}: {summary}");
    assert_eq!(summary.violated, 0, "{level}: {summary}");
    summary
}

#[test]
fn a_cluster_at_rest_is_always_held() {
    let summary = seeds(FaultLevel::None, 200);
    assert_eq!(summary.outcomes.get(&Ended::Finished), Some(&summary.runs));
}

#[test]
fn a_busy_cluster_is_nearly_always_held() {
    let summary = seeds(FaultLevel::Light, 300);
    assert!(summary.held * 100 >= summary.runs * 95, "{summary}");
}

#[test]
fn whatever_goes_wrong_nobody_is_deceived() {
    let summary = seeds(FaultLevel::Heavy, 200);
    assert!(summary.held * 2 > summary.runs, "{summary}");
    // Of many runs more can be said.
    if summary.runs >= 20_000 {
        every_fault_struck_where_it_can(&summary);
    }
}

fn every_fault_struck_where_it_can(summary: &Summary) {
    for (kind, count) in summary.strikes_by_kind() {
        assert!(count >= 200, "{kind} struck only {count} times");
    }
    for &kind in FaultKind::ALL {
        for phase in [
            PhaseName::Connect,
            PhaseName::Suspend,
            PhaseName::WaitApply,
            PhaseName::Verify,
            PhaseName::Hold,
            PhaseName::Release,
        ] {
            let struck = summary.strikes.contains_key(&(kind, phase));
            assert!(
                struck || !kind.can_strike_in(phase),
                "{kind} never struck in {phase}"
            );
        }
    }
}

/// Every fault, at each phase in which it can strike, does so when it is aimed
/// there.
#[test]
fn an_aimed_fault_strikes_in_its_phase() {
    let sizes = Sizes {
        stores: 3..=5,
        regions: 10..=60,
    };
    for &kind in FaultKind::ALL {
        for phase in [PhaseName::Connect, PhaseName::WaitApply, PhaseName::Hold] {
            let aimed = |seed| {
                let mut setup = Setup::derive(seed, FaultLevel::Light, &sizes);
                setup.plan = setup.plan.only(&[]).aimed(kind, phase, 3);
                setup.plan.stop_after = Duration::from_secs(60);
                setup.hold = Duration::from_secs(20);
                let report = run(setup);
                assert!(
                    report.violations.is_empty(),
                    "{:?}: {}",
                    report.violations,
                    report.replay()
                );
                report.strikes.contains_key(&(kind, phase))
            };
            let struck = (0..20).any(aimed);
            assert!(struck || !kind.can_strike_in(phase), "{kind} in {phase}");
        }
    }
}

#[test]
fn the_same_seed_goes_the_same_way() {
    let sizes = Sizes::default();
    for level in [FaultLevel::None, FaultLevel::Light, FaultLevel::Heavy] {
        for seed in 0..20 {
            let first = run_seed(seed, level, &sizes);
            let second = run_seed(seed, level, &sizes);
            let replay = first.replay();
            assert_eq!(first.hash, second.hash, "{replay}");
            assert_eq!(first.ended, second.ended, "{replay}");
        }
    }
}

/// What shows that the oracle sees something: the weaker proof is known to be
/// deceived by a leader that is cut off and does not notice.
#[test]
fn claims_as_proof_are_deceived_and_the_oracle_sees_it() {
    let sizes = Sizes {
        stores: 3..=3,
        regions: 1..=6,
    };
    let mut seen = 0;
    let mut held = 0;
    for seed in 0..200 {
        let mut setup = Setup::derive(seed, FaultLevel::Heavy, &sizes);
        setup.replicas = 3;
        setup.plan = setup.plan.only(&[]).with(FaultKind::LostQuorum, 4);
        // PD could warn, if it heard of the new leader.
        setup.plan.timing = Timing {
            pd_lag: Duration::from_secs(600),
            pd_refresh: Duration::from_secs(600),
            ..Timing::default()
        };
        setup.plan.warm_up = Duration::from_secs(4);
        setup.plan.stop_after = Duration::from_secs(20);
        setup.pauses.clear();
        setup.cancel_after = None;
        setup.hold = Duration::from_secs(20);
        setup.config.lease = Duration::from_secs(60);
        setup.config.proof = Proof::Claims;
        let report = run(setup.clone());
        held += u32::from(report.held);
        seen += u32::from(!report.violations.is_empty());
        setup.config.proof = Proof::Read;
        let report = run(setup);
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
    println!("held {held} seen {seen}");
    assert!(seen > 0, "of {held} holds none was seen to be false");
}

/// Seeds in which a region was merged away before its leader had applied all of
/// its log; the target has caught up on it, so nothing is open.
#[test]
fn what_a_merged_region_left_behind_is_no_false_hold() {
    // Without the kinds that came later these runs are what they were.
    let before: Vec<FaultKind> = FaultKind::ALL
        .iter()
        .copied()
        .filter(|&kind| kind <= FaultKind::ClientPause)
        .collect();
    for seed in [4610, 8362, 18117] {
        let mut setup = Setup::derive(seed, FaultLevel::Heavy, &Sizes::default());
        setup.plan = setup.plan.only(&before);
        setup.plan.aims.clear();
        let report = run(setup);
        assert!(report.violations.is_empty(), "{}", report.replay());
    }
}

/// A seed in which the first answer of a lease waits unread while the client is
/// paused: what it says is not known yet when the leases are lifted.
#[test]
fn what_a_paused_client_has_not_read_it_does_not_know() {
    let report = run_seed(16619, FaultLevel::Heavy, &Sizes::default());
    assert!(report.violations.is_empty(), "{}", report.replay());
}
