use super::{Options, Summary, run};

/// Goes through a range of seeds, one after the other. `progress` is called
/// after each run with the number of runs done; it can end the simulation by
/// returning `false`.
pub fn simulate(options: &Options, mut progress: impl FnMut(u64) -> bool) -> Summary {
    let mut summary = Summary::default();
    for seed in options.seeds.clone() {
        summary.add(run(options.setup(seed)));
        if !progress(summary.runs) {
            break;
        }
    }
    summary
}
