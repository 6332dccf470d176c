//! The lock on etcd, on the real thing.
#![cfg(feature = "lock-etcd")]

#[path = "../lock/contest.rs"]
mod contest;
mod process;
mod server;
mod support;

mod conforming;
mod contention;
mod faults;
mod foreign;
mod login;
mod members;
mod tls;
