use arbitrary::{Result, Unstructured};

use super::deliver::{Answers, Status};
use crate::fuzz::play::{How, Plan, Run, Sometimes};
use crate::tikv::raw;

/// The most things that happen in one run.
const STEPS_MAX: usize = 200;
/// The most changes of one message.
const EDITS_MAX: usize = 4;

/// Plays a run in which what servers answer is bytes: those of a sound cluster,
/// changed here and there, or any at all. They are read as the client reads them
/// and go into a machine that the monitor watches. Returns what of note happened.
///
/// # Errors
/// The bytes make no run.
///
/// # Panics
/// Reading panics, sound bytes are misunderstood, or the machine breaks a rule.
pub fn answers(data: &[u8]) -> Result<Sometimes> {
    let mut u = Unstructured::new(data);
    let plan = Plan::beginning(&mut u)?;
    let mut run = match Run::new(plan.config.clone(), plan.world()) {
        Ok(run) => run,
        Err(what) => panic!("no run begins: {what}"),
    };
    for _ in 0..STEPS_MAX {
        if u.is_empty() || run.is_over() {
            break;
        }
        if let Err(what) = step(&mut u, &mut run)? {
            panic!("{}", run.explain(&what));
        }
    }
    if let Err(what) = run.run_out() {
        panic!("{}", run.explain(&what));
    }
    Ok(run.sometimes)
}

type Checked = std::result::Result<(), String>;

fn step(u: &mut Unstructured<'_>, run: &mut Run) -> Result<Checked> {
    Ok(match u.int_in_range(0..=15_u8)? {
        0..=3 => answer_all(run),
        4..=9 => {
            let which = usize::from(u.arbitrary::<u8>()?);
            let how = how(u)?;
            let edits = edits(u)?;
            let answers = Answers {
                how,
                old: u.arbitrary()?,
                change: &|message, bytes| edit(&edits, message, bytes),
            };
            answer(run, which, answers)
        }
        10 => {
            let which = usize::from(u.arbitrary::<u8>()?);
            let length = usize::from(u.arbitrary::<u8>()?).min(u.len());
            let any = u.bytes(length)?.to_vec();
            let answers = Answers {
                how: How::Well,
                old: u.arbitrary()?,
                change: &|message, bytes| {
                    if message == 0 {
                        *bytes = any.clone();
                    }
                },
            };
            answer(run, which, answers)
        }
        11 => {
            let which = usize::from(u.arbitrary::<u8>()?);
            let status = status(u)?;
            match pick(run, which) {
                Some(index) => super::deliver::fail(run, index, &status),
                None => Ok(()),
            }
        }
        12 => {
            let length = usize::from(u.arbitrary::<u8>()?).min(u.len());
            look_at(u.bytes(length)?);
            Ok(())
        }
        13..=14 => run.next_deadline(),
        _ => match u.int_in_range(0..=7_u8)? {
            0 => run.event(crate::machine::Event::FinishRequested),
            _ => {
                run.world.change(&u.arbitrary()?);
                Ok(())
            }
        },
    })
}

fn how(u: &mut Unstructured<'_>) -> Result<How> {
    Ok(match u.int_in_range(0..=4_u8)? {
        0..=2 => How::Well,
        3 => How::Yes,
        _ => How::Refuse(u.arbitrary()?),
    })
}

fn pick(run: &Run, which: usize) -> Option<usize> {
    which.checked_rem(run.world.outstanding.len())
}

fn answer(run: &mut Run, which: usize, answers: Answers<'_>) -> Checked {
    match pick(run, which) {
        Some(index) => super::deliver::answer(run, index, answers),
        None => Ok(()),
    }
}

/// Answers all that is outstanding now, unchanged.
fn answer_all(run: &mut Run) -> Checked {
    for asked in run.world.outstanding.clone() {
        let index = run.world.outstanding.iter().position(|it| *it == asked);
        if let Some(index) = index {
            super::deliver::answer(run, index, Answers::sound())?;
        }
    }
    Ok(())
}

/// A change of one message.
struct Edit {
    message: u8,
    at: u16,
    what: u8,
    byte: u8,
}

fn edits(u: &mut Unstructured<'_>) -> Result<Vec<Edit>> {
    let count = u.int_in_range(0..=EDITS_MAX)?;
    let edits = (0..count).map(|_| {
        Ok(Edit {
            message: u.arbitrary()?,
            at: u.arbitrary()?,
            what: u.arbitrary()?,
            byte: u.arbitrary()?,
        })
    });
    edits.collect()
}

fn edit(edits: &[Edit], message: usize, bytes: &mut Vec<u8>) {
    for edit in edits {
        // Most answers are a single message, or few.
        if usize::from(edit.message % 4) != message % 4 {
            continue;
        }
        let at = usize::from(edit.at) % (bytes.len() + 1);
        match edit.what % 4 {
            0 => bytes.insert(at, edit.byte),
            1 => bytes.truncate(at),
            2 => {
                if at < bytes.len() {
                    bytes.remove(at);
                }
            }
            _ => {
                if let Some(found) = bytes.get_mut(at) {
                    *found = edit.byte;
                }
            }
        }
    }
}

fn status(u: &mut Unstructured<'_>) -> Result<Status> {
    let length = usize::from(u.arbitrary::<u8>()?).min(u.len());
    Ok(Status {
        code: i32::from(u.int_in_range(0..=17_u8)?),
        place: u.arbitrary()?,
        message: String::from_utf8_lossy(u.bytes(length)?).into_owned(),
    })
}

/// Reads what no machine sees.
fn look_at(bytes: &[u8]) {
    if let Ok((cluster_id, _)) = raw::members(bytes) {
        assert_ne!(cluster_id, 0, "a cluster without an id");
    }
    if let Ok(timestamp) = raw::min_ts(bytes) {
        assert!(timestamp >> 18 > 0, "a timestamp without a time");
    }
}
