use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::args::DemoArgs;
use super::exit::Outcome;
use super::output::{Reporter, RunResult};
use super::process::Signals;
use super::run::{plan_of, run_against};
use super::seed::fresh_seed;
use super::serve::no_cluster;
use super::simulated::Simulated;
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
    let simulated = match Simulated::start(&args.cluster, listen).await {
        Ok(simulated) => simulated,
        Err(wrong) => return no_cluster(wrong),
    };
    if reporter.is_json() {
        reporter.emit(simulated.serving());
    } else {
        reporter.note(simulated.note());
    }
    let endpoints = simulated.served.pd_endpoints();
    let result = run_against(
        &endpoints,
        Security::none(),
        plan,
        Arc::new(()),
        reporter,
        signals,
    )
    .await;
    simulated.stop();
    result
}
