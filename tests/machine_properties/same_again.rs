//! Determinism: the machine has no clock, no randomness and no order of its own.

use snapshot_prepare::fuzz::play::Run;

use super::plan::plan;
use super::runner::check;

const REGRESSIONS: &str = "tests/machine_properties/regressions/same_again.txt";

/// The same inputs twice give equal machines and equal effects.
#[test]
fn same_inputs_give_the_same_machine_and_effects() {
    let name = "same_inputs_give_the_same_machine_and_effects";
    check(name, REGRESSIONS, 256, &plan(), |plan| {
        let mut first = Run::new(plan.config.clone(), plan.world())?;
        let mut second = Run::new(plan.config.clone(), plan.world())?;
        for step in &plan.moves {
            first.step(step)?;
            second.step(step)?;
            if first.machine != second.machine {
                return Err(first.explain("two machines with the same inputs differ"));
            }
        }
        if first.effects != second.effects {
            return Err(first.explain("two machines with the same inputs do different things"));
        }
        // A copy goes on as the original does.
        let mut copy = first.clone();
        first.run_out()?;
        copy.run_out()?;
        if first.machine != copy.machine || first.effects != copy.effects {
            return Err(first.explain("a copy goes its own way"));
        }
        Ok(())
    });
}
