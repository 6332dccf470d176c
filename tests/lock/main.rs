//! Locks: what holds for all of them, the suite, and each kind of lock.
#![cfg(feature = "lock")]

mod contest;
mod flawed;
mod guard;
mod memory;
#[cfg(feature = "lock-storage")]
mod storage;
