use super::args::ServeArgs;
use super::exit::Outcome;
use super::output::{Reporter, RunResult};
use super::process::{Signals, name_of};
use super::simulated::{NoCluster, Simulated};

/// Serves a simulated cluster until a signal comes.
pub(super) async fn serve(
    args: ServeArgs,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let certificates = match args.tls.certificates() {
        Ok(certificates) => certificates,
        Err(message) => return no_cluster(NoCluster::Config(message)),
    };
    let simulated = match Simulated::start(&args.cluster, args.listen, certificates).await {
        Ok(simulated) => simulated,
        Err(wrong) => return no_cluster(wrong),
    };
    reporter.emit(simulated.serving());
    let signal = signals.next().await;
    reporter.note(name_of(signal));
    simulated.stop();
    RunResult::new(Outcome::Ok).meaning("the simulated cluster is gone")
}

/// Returns the result of a cluster that does not start.
pub(super) fn no_cluster(wrong: NoCluster) -> RunResult {
    match wrong {
        NoCluster::Config(message) => RunResult::new(Outcome::Usage).because("config", message),
        NoCluster::System(message) => RunResult::new(Outcome::Error).because("internal", message),
    }
}
