use super::args::ServeArgs;
use super::output::{Reporter, RunResult};
use super::process::Signals;
pub(super) async fn serve(
    _args: ServeArgs,
    _reporter: &Reporter,
    _signals: &mut Signals,
) -> RunResult {
    RunResult::new(super::exit::Outcome::Error)
}
