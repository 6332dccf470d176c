//! A lock that is an object on storage, beside the backup.
//!
//! The object holds JSON that says who has the lock: `locked_at`, `locker_host`,
//! `locker_pid`, `txn_id` and `hint`, as the tools of TiDB write it. Theirs of all
//! versions, and TiKV's, are read. What they hold blocks us, what we hold blocks
//! them; where they would not understand ours they still see its name.
//!
//! # How it is taken
//! In the steps of those who have no conditional writes, so that at every point
//! they see us and we see them: look at the lock's family (the objects whose name
//! is the lock's, or begins with it and a dot), announce (`.INTENT.` and the
//! transaction id), look again, put the lock in place, look a third time and read
//! it back, withdraw the announcement. Two who announce at the same moment see each
//! other, give up and try again after a pause at random. The lock is put in place
//! only where there is none, atomically, if the store can do that; what the store
//! can do is found out by trying, on announcements and never on a lock.
//!
//! Whatever lies in the family and is not understood is in the way and is left
//! alone. Nothing is ever concluded from a host or a process that seem to be gone.
//!
//! # Lease
//! With [`LockConfig::ttl`](crate::lock::LockConfig::ttl) the lock has an end
//! (`expire_at`, and `lease_ms`, which only we write) and is renewed by a write that
//! succeeds only on the version it knows. When an end is past, by our clock and by
//! the storage's, and the storage has seen no renewal for the lease and a grace
//! ([`StorageOptions::grace`]), the next who wants the lock replaces exactly the
//! version it read. Where a store has no such write, the lock does not expire,
//! [`LockGuard::expires`](crate::lock::LockGuard::expires) says so, and nobody takes
//! one over there. A read lock lies in a place of its own, where nobody else's comes:
//! one that has expired stays in the writers' way. Locks that do not expire, all of
//! other tools among them, stay until their holder removes them. Whatever stays can
//! be broken by its id.
//!
//! | store | put in place atomically | lease, takeover |
//! | --- | --- | --- |
//! | Amazon S3, Google Cloud Storage, Azure Blob Storage | yes | yes |
//! | what speaks S3's language (MinIO, R2, Ceph, …) | found out | found out |
//! | local files | yes, by a hard link | no: does not expire |
//! | memory | yes | yes |
//! | a store with neither | by announcements alone | no: does not expire |
//!
//! # What it promises, and what not
//! - Two holders are excluded as long as the store lists and reads every write that
//!   has ended. The stores above do; a network file system that caches folders, and
//!   a bucket that is copied from another, do not.
//! - A holder that is cut off or stopped for longer than its lease notices by its
//!   own clock, at [`LockGuard::ensure_held`](crate::lock::LockGuard::ensure_held)
//!   at the latest. What it has sent to somebody else before arrives all the same:
//!   storage gives no fencing number.
//! - No delete under a condition is common to the stores. So the release, and a
//!   break, look whose the lock is and then delete it, and what takes its place
//!   between the two is deleted too. With a lease the release renews the lock first,
//!   so nobody can take it over meanwhile. Without one, only a break by hand in that
//!   very moment, followed by another holder, can be hit.
//! - A writer that overwrites blindly and announces nothing (the first version of
//!   TiDB's tools) can replace our lock between its check and its write. The
//!   read-back or the next look
//!   ([`LockConfig::check_interval`](crate::lock::LockConfig::check_interval)) tells,
//!   and the lock is lost.
//! - A holder that dies while it takes or releases the lock can leave its
//!   announcement. Ours blocks us for some minutes, and others until one of us takes
//!   the lock, or until it is broken.
//!
//! # Several locks
//! Who needs both a read lock and an append lock takes the read lock first, as the
//! other tools do, and drops it when it cannot have the second.

mod attempt;
mod expiry;
mod failure;
mod family;
mod held;
#[cfg(test)]
mod interleaving;
mod lock;
mod look;
mod metadata;
mod open;
mod options;
#[cfg(feature = "arbitrary")]
pub(crate) mod raw;
mod shelf;
mod support;
mod txn_id;

pub use family::LockMode;
pub use lock::StorageLock;
pub use options::{StorageOptions, WallClock};
