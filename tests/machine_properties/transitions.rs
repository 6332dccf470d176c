//! The transition table: phase × event → phase, as a committed text.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites it; a change of the protocol shows as a diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use snapshot_prepare::error::FailureKind;
use snapshot_prepare::fuzz::play::{Asked, How, Run, World, failure};
use snapshot_prepare::machine::{Config, Event, RequestId};
use snapshot_prepare::progress::PhaseName;
use snapshot_prepare::region::RegionErrorKind;

const SNAPSHOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/snapshots/transitions.txt"
);

/// The phases in which a run can be, in order.
const PHASES: [PhaseName; 7] = [
    PhaseName::Connect,
    PhaseName::Suspend,
    PhaseName::WaitApply,
    PhaseName::Verify,
    PhaseName::Hold,
    PhaseName::Release,
    PhaseName::Closed,
];

/// Brings a machine with one store and one region into a phase.
fn reach(phase: PhaseName) -> Run {
    let mut run = Run::new(Config::default(), World::new(1, 1)).expect("starts");
    for _ in 0..40 {
        if run.machine.phase() == phase {
            return run;
        }
        let past_hold = matches!(phase, PhaseName::Release | PhaseName::Closed);
        if run.machine.phase() == PhaseName::Hold && past_hold {
            run.event(Event::FinishRequested).expect("sound");
        } else if run.world.outstanding.is_empty() {
            run.next_deadline().expect("sound");
        } else {
            run.answer(0, &How::Well).expect("sound");
        }
    }
    panic!("{phase} is not reached");
}

/// Everything that is outstanding is answered in that way.
fn answer_each(run: &mut Run, how: &How) {
    for asked in run.world.outstanding.clone() {
        if let Some(index) = run.world.outstanding.iter().position(|it| *it == asked) {
            run.answer(index, how).expect("sound");
        }
    }
}

fn send(run: &mut Run, event: Event) {
    run.event(event).expect("sound");
}

fn end_stream(run: &mut Run, kind: FailureKind) {
    // The stream of the attempt, also where the run is over.
    let stream = run.world.streams.keys().next().copied();
    let stream = stream.unwrap_or(RequestId(3));
    run.world.forget_stream(stream);
    send(
        run,
        Event::StreamEnded {
            stream,
            reason: failure(kind),
        },
    );
}

/// What happens, with its name in the table.
type Deed = (&'static str, fn(&mut Run));

const DEEDS: &[Deed] = &[
    ("all that is outstanding is answered well", |run| {
        answer_each(run, &How::Well);
    }),
    ("... with a refusal", |run| {
        answer_each(run, &How::Refuse(RegionErrorKind::NotLeader));
    }),
    ("... with a refusal, and what follows well", |run| {
        answer_each(run, &How::Refuse(RegionErrorKind::NotLeader));
        answer_each(run, &How::Well);
    }),
    ("... with another epoch", |run| {
        answer_each(run, &How::WrongEpoch);
    }),
    ("... naming no region", |run| {
        answer_each(run, &How::Nameless)
    }),
    ("... only in part", |run| answer_each(run, &How::Partly)),
    ("... UNAVAILABLE", |run| {
        answer_each(run, &How::Fail(FailureKind::Unavailable));
    }),
    ("... UNIMPLEMENTED", |run| {
        answer_each(run, &How::Fail(FailureKind::Unsupported));
    }),
    ("an old answer to each call comes again", |run| {
        for asked in run.world.old.clone() {
            if !matches!(asked, Asked::Open { .. } | Asked::End { .. }) {
                let event = run.world.clone().answer(&asked, &How::Well, run.now);
                send(run, event);
            }
        }
    }),
    ("the stream ends UNAVAILABLE", |run| {
        end_stream(run, FailureKind::Unavailable);
    }),
    ("the stream ends Superseded", |run| {
        end_stream(run, FailureKind::Superseded);
    }),
    ("the stream ends FAILED_PRECONDITION", |run| {
        end_stream(run, FailureKind::LeaseLost);
    }),
    ("the stream ends Unauthenticated", |run| {
        end_stream(run, FailureKind::Unauthenticated);
    }),
    ("the next deadline passes", |run| {
        run.next_deadline().expect("sound");
    }),
    ("11 s pass", |run| {
        run.pass(Duration::from_secs(11)).expect("sound");
    }),
    ("119 s pass", |run| {
        run.pass(Duration::from_secs(119)).expect("sound");
    }),
    ("2 h pass", |run| {
        run.pass(Duration::from_secs(7200)).expect("sound");
    }),
    ("FinishRequested", |run| send(run, Event::FinishRequested)),
    ("CancelRequested", |run| send(run, Event::CancelRequested)),
    ("LockLost", |run| send(run, Event::LockLost)),
];

/// Names where a deed led, with the outcome where the run is over.
fn place(run: &Run) -> String {
    let phase = run.machine.phase().to_string();
    match run.machine.outcome() {
        None => phase,
        Some(outcome) => match outcome.error() {
            None => format!("{phase} {outcome:?}"),
            Some(error) => {
                let name = format!("{outcome:?}");
                let name = name.split('(').next().unwrap_or_default().to_owned();
                format!("{phase} {name}({})", error.kind())
            }
        },
    }
}

fn table() -> String {
    let mut text = String::from("# phase × event → the phases entered, and where that ends\n");
    let mut edges = BTreeSet::new();
    for phase in PHASES {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "\n{phase}");
        for (name, deed) in DEEDS {
            let mut run = reach(phase);
            let before = run.phases.len();
            deed(&mut run);
            edges.extend(run.phases.windows(2).map(|pair| (pair[0], pair[1])));
            let mut path = String::new();
            for next in &run.phases[before..] {
                let _ = write!(path, "{next} ");
            }
            let path = if path.is_empty() { "- " } else { &path };
            let _ = writeln!(text, "  {name:<42} {path}| {}", place(&run));
        }
    }
    text.push_str("\n# the same as a graph\ndigraph phases {\n");
    for (from, to) in edges {
        let _ = writeln!(text, "  {from} -> {to};");
    }
    text.push_str("}\n");
    text
}

#[test]
fn transitions_are_those_of_the_snapshot() {
    let now = table();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(SNAPSHOT, &now).expect("writes the snapshot");
    }
    let before = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    for (number, (before, now)) in before.lines().zip(now.lines()).enumerate() {
        assert_eq!(
            before,
            now,
            "line {} of {SNAPSHOT}; if that is meant, run again with UPDATE_SNAPSHOTS=1",
            number + 1
        );
    }
    assert_eq!(
        before.lines().count(),
        now.lines().count(),
        "lines of {SNAPSHOT}; if that is meant, run again with UPDATE_SNAPSHOTS=1"
    );
}
