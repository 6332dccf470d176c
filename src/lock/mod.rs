//! Locks that let one run at a time work: one trait, whatever the lock lies on.
//!
//! [`RunLock::acquire`] takes the lock, at once or within a time, and returns a
//! [`LockGuard`]. A task renews the lock until the guard is released or dropped.
//! Before each risky step ask [`LockGuard::ensure_held`]; [`LockGuard::lost`]
//! resolves when the lock is lost, by the own clock, whether or not the backend
//! answers. A lost lock stays lost.
//!
//! ```no_run
//! use std::time::Duration;
//! use snapshot_prepare::lock::{LockConfig, LockError, MemoryLock, RunLock};
//!
//! # async fn example() -> Result<(), LockError> {
//! let lock = MemoryLock::new(LockConfig::default())?;
//! let guard = lock.acquire(Duration::from_secs(60)).await?;
//! tokio::select! {
//!     error = guard.lost() => return Err(error),
//!     () = work() => guard.ensure_held()?,
//! }
//! let release = guard.release().await?;
//! println!("{release}");
//! # Ok(())
//! # }
//! # async fn work() {}
//! ```
//!
//! # Which one
//! | | on storage | on etcd |
//! | --- | --- | --- |
//! | needs | the backup's storage | an etcd, PD's will do |
//! | excludes also | log truncation and other tools that lock the same object | `etcdctl lock`, TiDB's locks of the same name |
//! | a holder that died blocks the others | for ever, or with a lease for it and a grace, where the storage can renew | for the lease |
//! | fencing number | no | yes |
//! | tells a loss | at the next look or renewal | at the next renewal |
//!
//! Take the one on storage when what has to be excluded works on the backup's
//! files, and the one on etcd when it works on the cluster.
//!
//! No lock stops TiKV itself, nor what a holder has sent before it noticed the
//! loss: a lock makes it unlikely that two work at once, the checks of the prepare
//! stage are what makes it safe.
//!
//! # A lock of one's own
//! A backend makes the raw calls ([`HeldLock`]: renew, release) and hands them to
//! [`LockGuard::start`], which does the rest for all of them: it decides when to
//! renew, gives each call a deadline, and judges the time. [`conformance`] is the
//! suite that every lock has to pass, [`MemoryLock`] the smallest example.

mod config;
pub mod conformance;
mod detached;
mod error;
#[cfg(feature = "lock-etcd")]
pub mod etcd;
mod guard;
mod held;
mod holder;
mod keeper;
mod memory;
mod renewal;
mod run_lock;
mod state;
#[cfg(feature = "lock-storage")]
pub mod storage;
mod url;

pub use crate::clock::Clock;
pub use config::LockConfig;
pub use error::{LockError, LockErrorKind};
pub use guard::{Asked, LockGuard};
pub use held::{BoxFuture, HeldLock, Loss, Release, RenewError};
pub use holder::{Holder, HolderKind, Holders};
pub use memory::MemoryLock;
pub use run_lock::RunLock;
pub use url::{EtcdUrl, LockUrl, StorageService, StorageUrl};
