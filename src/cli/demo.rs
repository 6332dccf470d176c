use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::args::DemoArgs;
use super::exit::Outcome;
use super::oracle::Oracle;
use super::output::{Reporter, RunResult};
use super::process::Signals;
use super::run::{plan_of, run_against};
use super::seed::fresh_seed;
use super::serve::no_cluster;
use super::simulated::Simulated;
use crate::error::ErrorKind;
use crate::sim::oracle::Violation;
use crate::tikv::Security;

/// Does a run against a simulated cluster in this process.
pub(super) async fn demo(
    mut args: DemoArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let seed = *args.cluster.seed.get_or_insert_with(fresh_seed);
    let plan = match plan_of(&args.hold, args.command, Some(args.hold_for), seed) {
        Ok(plan) => plan,
        Err(message) => return RunResult::new(Outcome::Usage).because("config", message),
    };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let simulated = match Simulated::start(&args.cluster, listen, None).await {
        Ok(simulated) => simulated,
        Err(wrong) => return no_cluster(wrong),
    };
    if reporter.is_json() {
        reporter.emit(simulated.serving());
    } else {
        reporter.note(simulated.note());
    }
    let oracle = Arc::new(Oracle::new(Arc::clone(&simulated.served), &plan.config));
    let endpoints = simulated.served.pd_endpoints();
    let result = run_against(
        &endpoints,
        Security::none(),
        plan,
        oracle.clone(),
        reporter,
        signals,
    )
    .await;
    let violations = oracle.judge();
    let result = judged(result, &violations, simulated.seed);
    simulated.stop();
    result
}

/// Returns the result, or that it is not true.
fn judged(result: RunResult, violations: &[Violation], seed: u64) -> RunResult {
    let Some(first) = violations.first() else {
        return result;
    };
    let message = format!(
        "the run ended as {}, but the simulation says (seed {seed}, {} violations): {first}",
        result.outcome,
        violations.len()
    );
    RunResult {
        outcome: Outcome::Error,
        ..result
    }
    .because(ErrorKind::Oracle.as_str(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_turns_any_outcome_into_an_error() {
        let violation = Violation {
            property: "no false hold",
            message: "region 7 was not settled".to_owned(),
        };
        for outcome in [Outcome::Ok, Outcome::CommandFailed] {
            let untouched = judged(RunResult::new(outcome), &[], 9);
            assert_eq!(untouched, RunResult::new(outcome));
            let result = judged(RunResult::new(outcome), std::slice::from_ref(&violation), 9);
            assert_eq!(result.outcome, Outcome::Error);
            assert_eq!(result.kind, Some("oracle"));
            let message = result.message.expect("says what");
            assert!(
                message.contains("region 7") && message.contains("seed 9"),
                "{message}"
            );
        }
    }
}
