//! Leader reads: many in a message (`BatchCommands`), which costs a store half
//! as much, or each a call of its own (`KvBatchGet`, `RawBatchGet`) at a store
//! that does not serve that.

mod alone;
mod answers;
mod batch;
mod manner;
mod outcome;
mod reader;

pub use answers::TikvReads;
pub(super) use manner::Manner;
#[cfg(feature = "arbitrary")]
pub(super) use outcome::{judge_kv, judge_raw};
pub(super) use reader::Reader;
