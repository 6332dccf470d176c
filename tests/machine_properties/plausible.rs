//! Properties over what a cluster could really answer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use snapshot_prepare::fuzz::play::{Asked, How, Move, Run, World};
use snapshot_prepare::machine::{Config, Outcome};
use snapshot_prepare::progress::PhaseName;

use super::plan::plan;
use super::runner::check;

const REGRESSIONS: &str = "tests/machine_properties/regressions/plausible.txt";

/// How often something worth having happened, so that a property that never
/// meets it is found out.
#[derive(Default)]
struct Seen {
    held: AtomicU32,
    finished: AtomicU32,
    lost: AtomicU32,
    again: AtomicU32,
}

fn bump(counter: &AtomicU32, happened: bool) {
    counter.fetch_add(u32::from(happened), Ordering::Relaxed);
}

/// Whatever happens, the rules are kept, and once all answer well the run ends.
#[test]
fn rules_are_kept_whatever_the_cluster_does() {
    let seen = Seen::default();
    let cases = 768;
    check(
        "rules_are_kept_whatever_the_cluster_does",
        REGRESSIONS,
        cases,
        &plan(),
        |plan| {
            let mut run = Run::new(plan.config.clone(), plan.world())?;
            run.follow(plan).map_err(|what| run.explain(&what))?;
            let outcome = run.machine.outcome();
            let entered = |phase| run.phases.iter().filter(|it| **it == phase).count();
            bump(&seen.held, entered(PhaseName::Hold) > 0);
            bump(&seen.finished, matches!(outcome, Some(Outcome::Finished)));
            bump(&seen.lost, matches!(outcome, Some(Outcome::HoldLost(_))));
            bump(&seen.again, entered(PhaseName::Connect) > 1);
            Ok(())
        },
    );
    for (what, counter) in [
        ("held", &seen.held),
        ("finished", &seen.finished),
        ("lost a hold", &seen.lost),
        ("began again", &seen.again),
    ] {
        let count = counter.load(Ordering::Relaxed);
        println!("{count} runs {what}");
        assert!(count > 0, "no run {what}: the plans are too wild");
    }
}

/// R14: a renewal that was answered before the last proof does not count.
#[test]
fn the_hold_waits_for_a_renewal_sent_after_the_last_proof() {
    let mut run = Run::new(Config::default(), World::new(2, 2)).expect("starts");
    let all_but_leases = |run: &mut Run| {
        for _ in 0..5 {
            run.step(&Move::AnswerAllButLeases).expect("sound");
        }
    };
    all_but_leases(&mut run);
    run.next_deadline().expect("the streams settle");
    run.step(&Move::AnswerAll).expect("the first leases");
    assert_eq!(run.machine.phase(), PhaseName::WaitApply);
    run.pass(Duration::from_secs(30)).expect("renewals are due");
    for index in (0..run.world.outstanding.len()).rev() {
        if matches!(run.world.outstanding[index], Asked::Lease { .. }) {
            run.answer(index, &How::Well).expect("renewed");
        }
    }
    all_but_leases(&mut run);
    assert_eq!(run.machine.phase(), PhaseName::Verify);
    run.step(&Move::AnswerAll).expect("the last renewals");
    assert_eq!(run.machine.phase(), PhaseName::Hold);
}
