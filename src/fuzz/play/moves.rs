//! What happens to a run: one move after another, or wild events.

use super::answer::How;
use super::world::{Change, World};
use crate::error::FailureKind;
use crate::machine::Config;
use crate::time::Timestamp;

/// One thing that happens; the numbers pick what is there at that moment.
#[derive(Clone, Debug)]
pub enum Move {
    /// All that is outstanding is answered well.
    AnswerAll,
    /// The same, but no lease is answered.
    AnswerAllButLeases,
    Answer(u8, How),
    /// Something old is answered, late or once more.
    Again(u8, How),
    /// Something will never be answered.
    Drop(u8),
    EndStream(u8, FailureKind),
    Change(Change),
    /// Milliseconds pass.
    Pass(u32),
    /// Milliseconds pass, and the next event comes before the deadlines.
    PassSilently(u32),
    NextDeadline,
    Finish,
    Cancel,
    LockLost,
}

/// A cluster, a configuration, and what happens.
#[derive(Clone, Debug)]
pub struct Plan {
    pub stores: u64,
    pub regions: u16,
    /// Whether the first store is leased by somebody else.
    pub foreign: bool,
    pub config: Config,
    pub moves: Vec<Move>,
    /// What happens once the hold is reached, if it is.
    pub in_hold: Vec<Move>,
}

impl Plan {
    pub fn world(&self) -> World {
        let mut world = World::new(self.stores, self.regions);
        if self.foreign
            && let Some(lease) = world.stores.values_mut().next()
        {
            *lease = Some(Timestamp::from_micros(60_000_000));
        }
        world
    }
}
