use super::args::SimulateArgs;
use super::output::{Reporter, RunResult};
use super::process::Signals;
pub(super) async fn simulate(
    _args: SimulateArgs,
    _reporter: &Reporter,
    _signals: &mut Signals,
) -> RunResult {
    RunResult::new(super::exit::Outcome::Error)
}
