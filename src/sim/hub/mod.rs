//! Runs a model on tokio's clock for many callers at once.
//!
//! The model sits behind one lock. Whoever asks something takes it for that
//! moment; a task of its own sleeps until the model's next timeout. What comes
//! out is handed over by batch, call by call.

mod call;
mod core;
mod inbox;

pub(in crate::sim) use self::core::Hub;
pub(in crate::sim) use call::{Call, Group};
