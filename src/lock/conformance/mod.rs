//! A suite that every [`RunLock`](super::RunLock) has to pass.
//!
//! It needs a lock that nobody else wants meanwhile, and a tokio runtime. It
//! gives nothing a deadline, so give the whole one of your own: a check that
//! hangs has failed.
//!
//! ```
//! use snapshot_prepare::lock::conformance::{Check, Violation, run};
//! use snapshot_prepare::lock::{LockConfig, MemoryLock, RunLock};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let lock = MemoryLock::new(LockConfig::default()).unwrap();
//! let contender = |hint: &str| {
//!     let mut config = LockConfig::default();
//!     config.hint = hint.to_owned();
//!     Box::new(lock.contender(config).unwrap()) as Box<dyn RunLock>
//! };
//! assert_eq!(run(&contender).await, []);
//! # })
//! ```
//!
//! Checks of time (that the lock outlives its lease while it is held) need a
//! lease that is not long; see [`Check::HeldPastLease`].

mod breaking;
mod check;
mod contention;
mod context;
mod holding;
mod waiting;

pub use check::{Check, Violation, run};
pub use context::Contenders;
