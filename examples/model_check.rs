//! Looks at everything that can happen to a machine and a small cluster, within
//! bounds, and checks the rules in every state.
//!
//! ```text
//! cargo run --release --no-default-features --features sim --example model_check -- \
//!     --stores 3 --regions 2 --faults 1
//! cargo run --release --no-default-features --features sim --example model_check -- --suite
//! ```
//!
//! The first prints the bounds and the number of states of one space; the second
//! goes through the spaces that together have to show everything. Other options:
//! `--each N` (faults of each kind), `--kinds a,b` (kinds of faults), `--timeouts N`,
//! `--attempts N`, `--proof read|claims`, `--foreign` (a store is leased by
//! somebody else), `--open-command` (a bulk load is proposed already), `--states N` (give up after so many), `--replay PATH` (tell the
//! story of a path that an earlier run printed, with the same bounds).
//!
//! Properties of one's own are added to the explorer: see [`explorer`]. For a
//! model of one's own see `snapshot_prepare::sim::explore`.

use std::process::ExitCode;

use snapshot_prepare::machine::Proof;
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::sim::explore::{Explorer, Limits, Report};
use snapshot_prepare::sim::small::{Bounds, Fault, Small, SmallCluster, suite};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::from(2)
        }
    }
}

/// The explorer of a small cluster, with two properties of our own.
fn explorer(bounds: Bounds) -> Explorer<SmallCluster> {
    let stores = u64::from(bounds.stores);
    let foreign = bounds.foreign;
    SmallCluster::new(bounds)
        .explorer()
        .always(
            "no store is suspended by a mere dial",
            move |small: &Small| {
                let dials = small.phase() == PhaseName::Connect
                    && small.machine().progress().attempt == 1
                    && small.struck(Fault::Rival) == 0
                    && !foreign;
                match (1..=stores).find(|store| small.is_suspended(*store)) {
                    Some(store) if dials => Err(format!("store {store} is suspended")),
                    _ => Ok(()),
                }
            },
        )
        .sometimes("all stores are suspended at once", move |small| {
            (1..=stores).all(|store| small.is_suspended(store))
        })
}

fn run() -> Result<bool, String> {
    let mut bounds = Bounds::default();
    let mut limits = Limits::default();
    let mut replay = None;
    let mut whole_suite = false;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--suite" => whole_suite = true,
            "--foreign" => bounds.foreign = true,
            "--open-command" => bounds.open_command = true,
            _ => {
                let value = words.next().ok_or(format!("{word} needs a value"))?;
                match word.as_str() {
                    "--stores" => bounds.stores = number(&value, 1, 3)?,
                    "--regions" => bounds.regions = number(&value, 1, 3)?,
                    "--faults" => bounds.faults = number(&value, 0, 9)?,
                    "--each" => bounds.each = number(&value, 0, 9)?,
                    "--timeouts" => bounds.timeouts = number(&value, 0, 9)?,
                    "--attempts" => bounds.attempts = number(&value, 1, 9)?.into(),
                    "--states" => limits.states = value.parse().map_err(|_| value)?,
                    "--kinds" => bounds.kinds = kinds(&value)?,
                    "--proof" => bounds.proof = proof(&value)?,
                    "--replay" => replay = Some(value),
                    _ => return Err(format!("there is no option {word}")),
                }
            }
        }
    }
    if let Some(path) = replay {
        return tell(bounds, &path);
    }
    if whole_suite {
        return Ok(check_suite(&limits));
    }
    let report = check(bounds, &limits);
    Ok(report.violation.is_none())
}

/// Explores one space and prints what it found.
fn check(bounds: Bounds, limits: &Limits) -> Report {
    println!("{bounds}");
    let report = explorer(bounds).run_with(limits, |report| {
        eprint!("\r{} states, depth {}", report.states, report.depth);
    });
    eprintln!();
    println!("{report}");
    report
}

/// Explores the spaces of the suite; between them they have to show everything.
fn check_suite(limits: &Limits) -> bool {
    let reports: Vec<_> = suite()
        .into_iter()
        .map(|bounds| check(bounds, limits))
        .collect();
    let states: u64 = reports.iter().map(|report| report.states).sum();
    println!("{states} distinct states in {} spaces", reports.len());
    let mut is_good = reports.iter().all(|report| report.violation.is_none());
    for (at, sight) in reports
        .iter()
        .flat_map(|report| report.sights.iter().enumerate())
        .take(reports.first().map_or(0, |report| report.sights.len()))
    {
        if reports
            .iter()
            .all(|report| report.sights.get(at).is_none_or(|sight| sight.times == 0))
        {
            println!("never seen in any space: {}", sight.name);
            is_good = false;
        }
    }
    is_good
}

/// Prints the story of a path.
fn tell(bounds: Bounds, path: &str) -> Result<bool, String> {
    let path: Result<Vec<usize>, _> = path.split('.').map(str::parse).collect();
    let path = path.map_err(|error| format!("not a path: {error}"))?;
    let explorer = explorer(bounds);
    let (steps, state) = explorer.replay(&path)?;
    for step in &steps {
        println!("{}", step.action);
    }
    println!("then: {}", state.machine().waiting_for(5));
    match explorer.violated(&state) {
        None => Ok(true),
        Some((property, how)) => {
            println!("VIOLATED: {property}: {how}");
            Ok(false)
        }
    }
}

fn number(text: &str, least: u8, most: u8) -> Result<u8, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or(format!("{text} is not a number from {least} to {most}"))
}

fn kinds(text: &str) -> Result<Vec<Fault>, String> {
    text.split(',')
        .map(|name| {
            let mut all = Fault::ALL.into_iter();
            all.find(|fault| fault.as_str() == name)
                .ok_or(format!("there is no fault {name}"))
        })
        .collect()
}

fn proof(text: &str) -> Result<Proof, String> {
    match text {
        "read" => Ok(Proof::Read),
        "claims" => Ok(Proof::Claims),
        _ => Err(format!("there is no proof by {text}")),
    }
}
