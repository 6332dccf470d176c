//! A lock on etcd: a key that is bound to a lease.
//!
//! ```no_run
//! use std::time::Duration;
//! use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};
//! use snapshot_prepare::lock::{LockConfig, LockError, RunLock};
//!
//! # async fn example() -> Result<(), LockError> {
//! let target = EtcdConfig::new(["10.0.0.1:2379", "10.0.0.2:2379"], "backup")?
//!     .with_environment(|name| std::env::var(name).ok());
//! let lock = EtcdLock::new(target, LockConfig::default())?;
//! let guard = lock.acquire(Duration::ZERO).await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! PD's etcd will do. The layout is that of etcd's own mutex, so `etcdctl lock`,
//! Go's `concurrency.Mutex` and TiDB's locks of the same name exclude us, and we
//! them: a contender puts the key `NAME/LEASE`, with its lease's id in hex, and
//! who has the oldest key of that prefix holds the lock. Keys further down, as of
//! a lock named `NAME/other`, belong to the prefix too; that is so for etcd's
//! mutex as well.
//!
//! # What it promises and what not
//!
//! | | |
//! | --- | --- |
//! | one holder at a time | yes, as far as each heeds its guard; see below |
//! | order | who waits gets the lock in the order of coming |
//! | a holder that dies | its lock ends with its lease, at [`LockConfig::ttl`](super::LockConfig::ttl) (30 s by default) after the last renewal; later if etcd elects a leader meanwhile, which starts all leases anew |
//! | a holder that is cut off or paused | knows by its own clock that the lock is lost before etcd gives it to the next one |
//! | a holder whose key or lease is removed by hand | knows at its next renewal, within a third of the lease |
//! | fencing number | the key's create revision, which grows with each acquisition on the same etcd |
//! | TiKV | knows nothing of this lock: it excludes only those who take it |
//!
//! No lock can stop a holder that was paused *between* asking
//! [`ensure_held`](super::LockGuard::ensure_held) and acting on it. Where what is
//! written goes into the same etcd, compare in the same transaction that the
//! create revision of [`Holder::location`](super::Holder::location), the key, is
//! still [`LockGuard::fence`](super::LockGuard::fence).
//!
//! # Leases
//! Each acquisition has a lease of its own, with nothing bound to it but the key.
//! Its id is chosen here at random, so that a lease can be found and ended though
//! the answer that granted it was lost. What etcd grants counts, not what was
//! asked for; it grants whole seconds, and no less than a multiple of its
//! election timeout. Nothing is renewed once the guard is released, dropped or
//! lost: should the release fail, the lease ends by itself.
//!
//! # Connections
//! Each guard has one connection, to one member; whenever that gives no answer, a
//! new one is made to the next, within the time that the lease has left. Each new
//! one reads the certificates from their files and logs in anew; a token that has
//! expired is renewed once per call. Errors tell a refused login, password or
//! right ([`LockErrorKind::Permission`](super::LockErrorKind::Permission)) from an
//! etcd that does not answer.
//!
//! # The holder
//! The key's value says who holds the lock, in JSON: `locked_at`, `locker_host`,
//! `locker_pid`, `purpose` and `hint`. Other programs' mutexes neither write nor
//! read it; of their holders the key, the lease and what is left of it are told.
//! The id that [`break_lock`](super::RunLock::break_lock) wants is the lease's id
//! in hex, `-`, and the key's create revision. Breaking deletes the key; the
//! lease is left to its holder, who notices and ends it.
//!
//! A release whose answer was lost, and that is then found done, is told as
//! [`Release::AlreadyGone`](super::Release::AlreadyGone) or
//! [`Release::TakenOver`](super::Release::TakenOver): whether it was us or
//! somebody else who removed the key cannot be known.

mod acquisition;
mod address;
mod backend;
mod config;
mod dialer;
mod failure;
mod held;
mod key;
mod link;
mod lock;
mod metadata;

pub use config::EtcdConfig;
pub use lock::EtcdLock;
