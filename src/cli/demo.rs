use super::args::DemoArgs;
use super::output::{Reporter, RunResult};
use super::process::Signals;
pub(super) async fn demo(
    _args: DemoArgs,
    _reporter: &Reporter,
    _signals: &mut Signals,
) -> RunResult {
    RunResult::new(super::exit::Outcome::Error)
}
