use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::event::{CheckedCluster, CheckedStore, CommandStatus, Event, RunResult, Stamped};
use super::lock::{LockStatus, LockTold};
use super::stdio::write_best_effort;
use crate::cli::args::show_time;
use crate::cli::exit::Outcome;
use crate::error::ErrorKind;

/// Without a terminal, progress is told this often at the most.
const PROGRESS_EVERY_MS: u64 = 2_000;

/// Writes events for people: lines on standard output and, on a terminal, a
/// progress bar on standard error.
#[derive(Debug)]
pub(super) struct TextWriter {
    bar: Option<ProgressBar>,
    progress_told_ms: u64,
    store_rows: usize,
}

impl TextWriter {
    pub(super) fn new(bar: Option<ProgressBar>) -> Self {
        if let Some(bar) = &bar {
            let style = ProgressStyle::with_template("  {wide_bar} {pos}/{len} {msg}");
            // The template is a constant; should it be wrong after all, the
            // bar looks plain.
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        Self {
            bar,
            progress_told_ms: 0,
            store_rows: 0,
        }
    }

    pub(super) fn write(&mut self, stamped: &Stamped) {
        if let Some(bar) = &self.bar
            && stamped.event.is_progress()
        {
            show_on_bar(bar, &stamped.event);
            return;
        }
        if matches!(
            stamped.event,
            Event::Held { .. } | Event::Simulated(_) | Event::Result(_)
        ) && let Some(bar) = self.bar.take()
        {
            bar.finish_and_clear();
        }
        let Some(text) = self.text_of(stamped) else {
            return;
        };
        let write = || write_best_effort(io::stdout(), text.as_bytes());
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn text_of(&mut self, stamped: &Stamped) -> Option<String> {
        let body = match &stamped.event {
            // The first line of `serve` is the same in every format.
            Event::Serving { .. } => return stamped.json_line(),
            Event::Store(store) => {
                self.store_rows += 1;
                return Some(store_row(store, self.store_rows == 1));
            }
            Event::Cluster(cluster) => return Some(cluster_text(cluster)),
            Event::Simulated(simulated) => return Some(format!("{}\n", simulated.text)),
            Event::Setup { line, .. } => return Some(format!("{line}\n")),
            Event::Step(step) => return Some(format!("{}\n", step.line)),
            Event::Fault { name, about } => return Some(format!("{name:<18} {about}\n")),
            // A usage error is told on standard error alone.
            Event::Result(result) if result.outcome == Outcome::Usage => return None,
            Event::Result(result) => return Some(summary(result)),
            progress if progress.is_progress() => {
                if stamped.t_ms < self.progress_told_ms + PROGRESS_EVERY_MS {
                    return None;
                }
                self.progress_told_ms = stamped.t_ms;
                progress_text(progress)
            }
            other => line_of(other),
        };
        let seconds = Duration::from_millis(stamped.t_ms).as_secs_f64();
        Some(format!("[{seconds:8.3}s] {body}\n"))
    }
}

fn show_on_bar(bar: &ProgressBar, progress: &Event) {
    match progress {
        Event::Progress {
            stores_leased,
            stores,
            regions_confirmed,
            regions,
            retrying,
            ..
        } => {
            // A bar of no length looks full.
            bar.set_length(regions.unwrap_or(0).max(1));
            bar.set_position(*regions_confirmed);
            let mut message = format!("regions · {stores_leased}/{stores} stores");
            if *retrying > 0 {
                let _ = write!(message, " · {retrying} retrying");
            }
            bar.set_message(message);
        }
        Event::Simulating { done, all } => {
            bar.set_length(*all);
            bar.set_position(*done);
            bar.set_message("runs");
        }
        _ => {}
    }
}

fn progress_text(progress: &Event) -> String {
    match progress {
        Event::Progress {
            stores_leased,
            stores,
            regions_confirmed,
            regions,
            in_flight,
            retrying,
        } => {
            let of = regions.map_or_else(|| "?".to_owned(), |regions| regions.to_string());
            format!(
                "... {stores_leased}/{stores} stores suspended, {regions_confirmed}/{of} regions proven, {in_flight} in flight, {retrying} retrying"
            )
        }
        Event::Simulating { done, all } => format!("... {done}/{all} runs"),
        _ => String::new(),
    }
}

fn phase_text(phase: &str) -> &'static str {
    match phase {
        "connect" => "connect     dialing every store; nobody is suspended yet",
        "suspend" => "suspend     taking a lease on every store",
        "wait_apply" => "wait_apply  waiting until every region's leader has applied its log",
        "verify" => "verify      comparing once more with what the stores say",
        "hold" => "hold        everything is proven",
        "release" => "release     lifting the leases",
        "closed" => "closed",
        _ => "a further phase",
    }
}

fn line_of(event: &Event) -> String {
    match event {
        Event::Phase { phase, attempt } => {
            let mut text = phase_text(phase).to_owned();
            if *attempt > 1 && *phase != "closed" {
                let _ = write!(text, " (attempt {attempt})");
            }
            text
        }
        Event::ForeignLease { store } => {
            format!("store {store} was leased by somebody else already; is another backup running?")
        }
        Event::Held {
            cluster_id,
            stores,
            regions,
            tso,
            proof,
            ..
        } => {
            let mut text =
                format!("held: {stores} stores, {regions} regions of cluster {cluster_id}");
            if let Some(tso) = tso {
                let _ = write!(text, ", TSO {tso}");
            }
            if *proof == "claims" {
                text.push_str(
                    "\n            this rests on the assumption that no leader is cut off from its quorum while we still reach it",
                );
            }
            text
        }
        Event::Command {
            status: CommandStatus::Started,
            ..
        } => "command started".to_owned(),
        Event::Command { code, signal, .. } => match (code, signal) {
            (Some(code), _) => format!("command exited with code {code}"),
            (None, Some(signal)) => format!("command ended by signal {signal}"),
            (None, None) => "command ended".to_owned(),
        },
        Event::HoldLost { cause, message, .. } if *cause == ErrorKind::LockLost.as_str() => {
            format!("LOCK LOST: {message}")
        }
        Event::HoldLost { message, .. } => format!("HOLD LOST: {message}"),
        Event::Lock(lock) => lock_text(lock),
        Event::Note(text) => text.clone(),
        _ => String::new(),
    }
}

fn lock_text(lock: &LockTold) -> String {
    let LockTold { location, text, .. } = lock;
    match lock.status {
        LockStatus::Free => format!("lock {location} is free"),
        LockStatus::Held => format!("lock {location} is held: {text}"),
        LockStatus::Acquired => {
            let fence = lock
                .fence
                .map_or(String::new(), |fence| format!(", fence {fence}"));
            format!("lock {location} acquired: {text}{fence}")
        }
        LockStatus::Released => format!("lock {location} released"),
        LockStatus::Broken => format!("lock {location} broken: {text}"),
    }
}

/// Returns the last lines of a run.
fn summary(result: &RunResult) -> String {
    let outcome = result.outcome;
    let headline = result.headline.unwrap_or(outcome.meaning());
    let mut text = format!("\n{outcome}: {headline}\n");
    if let Some(message) = &result.message {
        let kind = result.kind.unwrap_or("error");
        let _ = writeln!(text, "  {kind}: {message}");
    }
    let mut times = Vec::new();
    if let Some(millis) = result.prepare_ms {
        times.push(format!(
            "prepared in {}",
            show_time(Duration::from_millis(millis))
        ));
    }
    if let Some(millis) = result.suspended_ms {
        times.push(format!(
            "stores suspended for {}",
            show_time(Duration::from_millis(millis))
        ));
    }
    if !times.is_empty() {
        let _ = writeln!(text, "  {}", times.join(", "));
    }
    for remark in &result.remarks {
        let _ = writeln!(text, "  {remark}");
    }
    if !result.released.is_empty() {
        let _ = writeln!(text, "  released: stores {}", list(&result.released));
    }
    for left in &result.unreleased {
        let _ = writeln!(
            text,
            "  store {} may stay suspended for up to {} more",
            left.store,
            show_time(Duration::from_millis(left.suspended_for_ms))
        );
    }
    text
}

/// Returns ids with commas, cut after the first twenty.
fn list(ids: &[u64]) -> String {
    let shown: Vec<String> = ids.iter().take(20).map(u64::to_string).collect();
    let mut text = shown.join(", ");
    if ids.len() > 20 {
        let _ = write!(text, " and {} more", ids.len() - 20);
    }
    text
}

fn store_row(store: &CheckedStore, is_first: bool) -> String {
    let mut text = String::new();
    if is_first {
        let _ = writeln!(
            text,
            "{:>8}  {:<24} {:<10} {:<9} {:>8} {:>8} {:>8}  fit",
            "store", "address", "version", "state", "regions", "leaders", "pending"
        );
    }
    let leaders = store
        .leaders
        .map_or_else(|| "?".to_owned(), |leaders| leaders.to_string());
    let fit = match (&store.error, store.takes_part) {
        (Some(error), _) => format!("NO: {error}"),
        (None, true) => "yes".to_owned(),
        (None, false) => "left out".to_owned(),
    };
    let _ = writeln!(
        text,
        "{:>8}  {:<24} {:<10} {:<9} {:>8} {:>8} {:>8}  {fit}",
        store.store,
        store.address,
        store.version,
        store.state,
        store.regions,
        leaders,
        store.pending_admin
    );
    text
}

fn cluster_text(cluster: &CheckedCluster) -> String {
    let mut text = format!(
        "\ncluster {}: {} stores to hold, {} regions led ({} known to PD)\n",
        cluster.cluster_id, cluster.stores, cluster.regions, cluster.regions_by_pd
    );
    let _ = writeln!(
        text,
        "gaps: {} among the stores' claims, {} in PD's list; regions without a leader in PD's list: {}",
        cluster.gaps, cluster.gaps_by_pd, cluster.leaderless_by_pd
    );
    if cluster.pending_admin > 0 {
        let _ = writeln!(
            text,
            "pending admin work: {} regions; a run would wait for it",
            cluster.pending_admin
        );
    }
    for problem in &cluster.problems {
        let _ = writeln!(text, "problem: {problem}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::event::Unreleased;

    fn stamped(event: Event, t_ms: u64) -> Stamped {
        Stamped {
            event,
            t_ms,
            at: String::new(),
        }
    }

    #[test]
    fn the_summary_names_what_stays_suspended() {
        let text = summary(&RunResult {
            suspended_ms: Some(3_250),
            unreleased: vec![Unreleased {
                store: 4,
                suspended_for_ms: 118_000,
            }],
            ..RunResult::new(Outcome::HoldLost).because("stream_lost", "store 4 went away")
        });
        assert!(text.contains("hold_lost: "), "{text}");
        assert!(text.contains("stream_lost: store 4 went away"), "{text}");
        assert!(text.contains("suspended for 3.25 s"), "{text}");
        assert!(
            text.contains("store 4 may stay suspended for up to 1 min 58 s"),
            "{text}"
        );
    }

    #[test]
    fn without_a_terminal_progress_is_told_now_and_then() {
        let mut writer = TextWriter::new(None);
        let progress = || Event::Progress {
            stores_leased: 3,
            stores: 3,
            regions_confirmed: 10,
            regions: Some(100),
            in_flight: 5,
            retrying: 0,
        };
        assert_eq!(writer.text_of(&stamped(progress(), 1_000)), None);
        let told = writer.text_of(&stamped(progress(), 2_000)).expect("told");
        assert!(told.contains("10/100 regions proven"), "{told}");
        assert_eq!(writer.text_of(&stamped(progress(), 3_999)), None);
    }

    #[test]
    fn a_claims_hold_says_what_it_rests_on() {
        let text = line_of(&Event::Held {
            cluster_id: 7,
            stores: 3,
            regions: 9,
            tso: None,
            proof: "claims",
            attempt: 1,
        });
        assert!(
            text.contains("assumption that no leader is cut off"),
            "{text}"
        );
    }
}
