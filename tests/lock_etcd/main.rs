//! The lock on etcd, on the real thing.
#![cfg(feature = "lock-etcd")]

mod process;
mod server;
mod support;

mod conforming;
mod foreign;
