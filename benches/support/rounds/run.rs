use std::time::Duration;

use snapshot_prepare::sim::model::Cluster;
use snapshot_prepare::sim::world::Setup;
use snapshot_prepare::time::Timestamp;

use super::coordinator::Coordinator;
use super::line::Line;

/// The clock of every run starts here, as that of the machine's runs does.
const START: Timestamp = Timestamp::from_micros(1_000_000_000);
/// How long a run may go on after its deadlines.
const GRACE: Duration = Duration::from_secs(120);

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    /// From the first lease sent to the last `Finish` answered, the hold left
    /// out.
    pub(crate) suspended: Duration,
    /// Whether a region failed at least once: refused, unanswered, without a
    /// leader, or different in the last listing.
    pub(crate) failed: bool,
}

/// Carries out a run as it was drawn; `None` when no good hold came of it.
pub(crate) fn run(setup: &Setup) -> Option<Ran> {
    let layout = setup.layout();
    let mut cluster = Cluster::new(&layout, setup.plan.clone(), setup.seed, START);
    let started = START + setup.plan.warm_up;
    cluster.handle_timeout(started);
    let line = Line::new(cluster, started);
    let end = started + setup.config.prepare_timeout + setup.hold + GRACE;
    let mut coordinator = Coordinator::new(&setup.config, setup.hold, line);
    coordinator.start();
    while !coordinator.is_over() {
        let due = coordinator.poll_timeout();
        if !coordinator.line.advance(due) || coordinator.line.now > end {
            return None;
        }
        while let Some((call, answer)) = coordinator.line.answer() {
            coordinator.answered(call, answer);
        }
        coordinator.time_passed();
    }
    coordinator.ran()
}
