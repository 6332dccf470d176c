//! What one store claims, and how far the proof of each region is.

mod books;
mod bounds;
mod column;
mod marks;
mod normal;
mod pace;
mod shelves;
mod slot;
mod sweep;
mod table;
mod task;
mod tiling;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub(super) use books::Shelf;
pub(super) use pace::TELLING as TELLING_READS;
pub(super) use shelves::Shelves;
pub(super) use slot::Slot;
pub(super) use sweep::sweep;
pub(super) use task::{Task, TaskState};
pub(super) use tiling::Tiling;
