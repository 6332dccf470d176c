//! The machine goes only where something happened: that must not be seen.

use snapshot_prepare::fuzz::play::Run;
use snapshot_prepare::machine::Machine;
use snapshot_prepare::time::Timestamp;

use super::plan::plan;
use super::runner::check;

const REGRESSIONS: &str = "tests/machine_properties/regressions/unchanged.txt";

/// A machine that goes over everything at each input does the same.
#[test]
fn going_over_everything_leads_to_the_same() {
    let name = "going_over_everything_leads_to_the_same";
    check(name, REGRESSIONS, 512, &plan(), |plan| {
        let mut run = Run::new(plan.config.clone(), plan.world())?;
        run.follow(plan)?;
        let start = Timestamp::from_micros(7_000_000);
        let mut slow =
            Machine::new(plan.config.clone(), start).map_err(|error| error.to_string())?;
        let mut effects = Vec::new();
        let mut drain = |slow: &mut Machine| {
            while let Some(effect) = slow.poll_effect() {
                effects.push(effect);
            }
            effects.len()
        };
        drain(&mut slow);
        for (input, now, before) in &run.inputs {
            if drain(&mut slow) != *before {
                return Err(run.explain("the number of effects differs"));
            }
            slow.forget_what_is_unchanged();
            match input {
                Some(event) => slow.handle_event(event.clone(), *now),
                None => slow.handle_timeout(*now),
            }
        }
        drain(&mut slow);
        if effects != run.effects {
            return Err(run.explain("the effects differ"));
        }
        let ends = |machine: &Machine| (machine.outcome().cloned(), machine.next_timer());
        if ends(&slow) != ends(&run.machine) {
            return Err(run.explain("the ends differ"));
        }
        Ok(())
    });
}
