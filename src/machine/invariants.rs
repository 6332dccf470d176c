use super::asking::Asking;
use super::core::Core;
use super::phase::Phase;
use super::session::Session;
use super::shelf::Task;
use super::{Machine, Proof};
use crate::range::KeyRangeSet;

impl Machine {
    /// Checks what must hold between any two inputs.
    ///
    /// # Errors
    /// A sentence that says which invariant is broken, and where.
    pub fn check_invariants(&self) -> Result<(), String> {
        time_is_used_up(self)?;
        if let Some(session) = self.phase.session() {
            session.check(&self.core)?;
        }
        if let Some(asking) = self.phase.asking() {
            asking.shelves.check(self.core.config.window)?;
            asking.listings.check()?;
            asking.retry.check()?;
        }
        match &self.phase {
            Phase::WaitApply { session, asking }
            | Phase::Verify {
                session, asking, ..
            } => {
                if !session.all_acknowledged() {
                    return Err("waits are sent although a store has no lease (R2)".to_owned());
                }
                proofs_are_covered(asking)?;
                nothing_is_held_back(&self.core, session, asking)?;
                nothing_is_forgotten(&self.core, asking)
            }
            Phase::Hold { .. } => match &self.core.prepared {
                Some(_) => Ok(()),
                None => Err("a hold without a report".to_owned()),
            },
            Phase::Closed(_) => match self.poll_timeout() {
                None => Ok(()),
                Some(_) => Err("a deadline although the run is over".to_owned()),
            },
            Phase::Connect(_) | Phase::Suspend { .. } | Phase::Release(_) => Ok(()),
        }
    }
}

#[cfg(feature = "arbitrary")]
impl Machine {
    /// Lets the next input go over everything, as if nothing were known of what
    /// has changed. A machine that it is done to before each input does the same
    /// as one that goes only where something happened, if more slowly.
    #[doc(hidden)]
    pub fn forget_what_is_unchanged(&mut self) {
        if let Some(session) = self.phase.session_mut() {
            session.forget_next_deadline();
        }
        if let Some((_, asking)) = self.phase.asking_mut() {
            asking.shelves.touch_all();
            asking.listings.make_all_busy();
            asking.retry.rejoin_all();
            asking.finish_looks(&mut self.core);
        }
    }
}

/// A deadline that has passed was dealt with: otherwise whoever drives the
/// machine would spin.
fn time_is_used_up(machine: &Machine) -> Result<(), String> {
    match machine.next_timer() {
        Some((at, timer)) if at <= machine.core.now => Err(format!(
            "the deadline {timer:?} at {at} is left over at {}",
            machine.core.now
        )),
        _ => Ok(()),
    }
}

/// What the windows have room for was sent: nobody would come back to it (R8).
fn nothing_is_held_back(core: &Core, session: &Session, asking: &Asking) -> Result<(), String> {
    let mut shelves = asking.shelves.iter();
    let held = shelves.find(|(store, shelf)| {
        session.stores.contains_key(store) && shelf.holds_back(core.config.window)
    });
    match held {
        None => Ok(()),
        Some((store, _)) => Err(format!(
            "store {store}: a wait or a read is held back though there is room for it"
        )),
    }
}

/// Whatever counts as proven is in the union (R12).
fn proofs_are_covered(asking: &Asking) -> Result<(), String> {
    let mut proven = 0;
    for (store, shelf) in asking.shelves.iter() {
        for task in shelf.iter() {
            if task.state != super::shelf::TaskState::Proven {
                continue;
            }
            proven += 1;
            if !asking.proven.overlaps(&shelf.range(task.slot)) {
                return Err(format!(
                    "region {} at store {store} is proven but not covered",
                    task.id
                ));
            }
        }
    }
    if proven != asking.confirmed {
        return Err(format!(
            "{proven} regions are proven, {} counted",
            asking.confirmed
        ));
    }
    Ok(())
}

/// Every key of the target is proven, being asked for, or due to be looked at
/// (R8, R11): nothing waits for ever.
fn nothing_is_forgotten(core: &Core, asking: &Asking) -> Result<(), String> {
    let mut known: KeyRangeSet = asking.proven.clone();
    for entry in asking.retry.iter().filter(|entry| entry.is_active()) {
        known.insert(&entry.range);
    }
    for shelf in asking.shelves.values() {
        for task in shelf.iter().filter(Task::is_live) {
            known.insert(&shelf.range(task.slot));
        }
    }
    match known.first_gap(&core.config.target) {
        None => Ok(()),
        Some(_) if core.config.proof == Proof::Claims && asking.in_flight() > 0 => Ok(()),
        Some(_) => Err("a part of the target is neither proven, nor asked for, nor due".to_owned()),
    }
}
