//! Properties over what a cluster could really answer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use snapshot_prepare::fuzz::play::{Asked, How, Move, Run, Sometimes, World};
use snapshot_prepare::machine::Config;
use snapshot_prepare::progress::PhaseName;

use super::plan::plan;
use super::runner::{check, is_full};

const REGRESSIONS: &str = "tests/machine_properties/regressions/plausible.txt";

/// What so many runs meet: each of these a dozen times or more, so that a
/// property that no longer gets there is found out.
const MET: [&str; 16] = [
    "suspend",
    "wait_apply",
    "verify",
    "hold",
    "release",
    "closed",
    "finished",
    "attempt failed",
    "a difference while verifying",
    "foreign lease",
    "failed: PrepareTimeout",
    "hold lost: HoldTimeout",
    "hold lost: LeaseLost",
    "hold lost: StreamLost",
    "hold lost: Superseded",
    "hold lost: ReleaseUnconfirmed",
];

/// Whatever happens, the rules are kept, and once all answers well the run ends.
#[test]
fn rules_are_kept_whatever_the_cluster_does() {
    let sometimes = Mutex::new(Sometimes::default());
    let cases = 768;
    check(
        "rules_are_kept_whatever_the_cluster_does",
        REGRESSIONS,
        cases,
        &plan(),
        |plan| {
            let mut run = Run::new(plan.config.clone(), plan.world())?;
            run.follow(plan).map_err(|what| run.explain(&what))?;
            lock(&sometimes).add(&run.sometimes);
            Ok(())
        },
    );
    let sometimes = lock(&sometimes);
    for (what, count) in sometimes.iter() {
        println!("{count:6} {what}");
    }
    if is_full() {
        for what in MET {
            assert!(sometimes.count_of(what) > 0, "no run met: {what}");
        }
    }
}

fn lock(sometimes: &Mutex<Sometimes>) -> MutexGuard<'_, Sometimes> {
    sometimes.lock().unwrap_or_else(PoisonError::into_inner)
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
