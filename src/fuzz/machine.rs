use arbitrary::{Arbitrary, Result, Unstructured};

use crate::progress::PhaseName;

use super::play::{Input, Plan, Run, Sometimes, follow_wild};

/// Plays a run made from bytes against the tiny cluster: either what a cluster
/// could do, watched by the monitor, or wild events, with the invariants checked
/// after each. Returns what of note happened.
///
/// # Errors
/// The bytes make no run.
///
/// # Panics
/// The machine breaks a rule, or an invariant.
pub fn machine(data: &[u8]) -> Result<Sometimes> {
    let mut u = Unstructured::new(data);
    let is_wild = u.int_in_range(0..=3_u8)? == 3;
    let plan = if is_wild {
        Plan::beginning(&mut u)?
    } else {
        Plan::arbitrary(&mut u)?
    };
    let mut run = match Run::new(plan.config.clone(), plan.world()) {
        Ok(run) => run,
        Err(what) => panic!("no run begins: {what}"),
    };
    let result = if is_wild {
        let phase = *u.choose(&PHASES)?;
        let inputs = wild_inputs(&mut u)?;
        run.run_to(phase)
            .and_then(|()| follow_wild(&inputs, &mut run))
    } else {
        run.follow(&plan)
    };
    if let Err(what) = result {
        panic!("{}", run.explain(&what));
    }
    Ok(run.sometimes)
}

/// The phases in which wild events begin.
const PHASES: [PhaseName; 5] = [
    PhaseName::Connect,
    PhaseName::Suspend,
    PhaseName::WaitApply,
    PhaseName::Verify,
    PhaseName::Hold,
];
/// The most wild inputs of one run.
const INPUTS_MAX: usize = 300;

fn wild_inputs(u: &mut Unstructured<'_>) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    while !u.is_empty() && inputs.len() < INPUTS_MAX {
        inputs.push(u.arbitrary()?);
    }
    Ok(inputs)
}
