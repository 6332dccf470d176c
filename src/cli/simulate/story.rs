use std::time::Instant;

use super::found;
use crate::cli::args::SimulateArgs;
use crate::cli::exit::Outcome;
use crate::cli::output::{Event, Reporter, RunResult, Step};
use crate::cli::process::Signals;
use crate::error::ErrorKind;
use crate::sim::world::{Line, Summary, tell};

/// How wide a line for people may be.
const WIDTH: usize = 100;

/// Carries out the run of one seed and tells it as a story.
pub(super) async fn tell_one(
    args: &SimulateArgs,
    seed: u64,
    reporter: &Reporter,
    signals: &mut Signals,
) -> RunResult {
    let began = Instant::now();
    let setup = args.options().setup(seed);
    let reveals_keys = reporter.shows_keys();
    let run = tokio::task::spawn_blocking(move || tell(setup, reveals_keys));
    let story = tokio::select! {
        biased;
        _ = signals.next() => {
            let message = "a signal came before the run was over";
            return RunResult::new(Outcome::Cancelled)
                .because(ErrorKind::Cancelled.as_str(), message);
        }
        story = run => match story {
            Ok(story) => story,
            Err(error) => {
                return RunResult::new(Outcome::Error)
                    .because(ErrorKind::Internal.as_str(), error.to_string());
            }
        },
    };
    reporter.emit(Event::Setup {
        seed,
        setup: story.report.setup.to_string(),
        line: wrapped(&story.opening()),
    });
    for line in &story.lines {
        reporter.emit(Event::Step(step(line)));
    }
    let mut text = format!("\n{}", story.judgement());
    let mut summary = Summary::default();
    summary.add(story.report);
    text.push_str(&format!("\nhash: {:016x}", summary.hash));
    let told = found::simulated(&summary, began.elapsed(), text);
    reporter.emit(Event::Simulated(Box::new(told)));
    if summary.violated > 0 {
        return found::violated(&summary);
    }
    RunResult::new(Outcome::Ok).meaning("no property was violated")
}

/// Breaks a text into lines at its spaces.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push_str("\n   ");
            width = 3;
        }
        if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

fn step(line: &Line) -> Step {
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Step {
        run_us: micros(line.at),
        until_us: micros(line.until),
        kind: line.mark.as_str(),
        text: line.text.clone(),
        line: line.to_string(),
    }
}
