//! The program end to end: the real binary, real gRPC on loopback, real
//! processes and signals. Nothing here asserts how long something takes; the
//! limits only keep a broken program from hanging the tests.
#![cfg(feature = "cli")]

#[cfg(feature = "lock-etcd")]
#[path = "../lock_etcd/server.rs"]
#[allow(dead_code)]
mod etcd;
#[path = "../lock/storage/s3_server.rs"]
mod s3_server;
#[path = "../tikv_client"]
#[allow(dead_code)]
mod servers {
    pub(crate) mod certificates;
    pub(crate) mod fake_pd;
    pub(crate) mod fake_store;
    pub(crate) mod support;
}

mod check;
mod demo;
mod hold;
mod keys;
mod lock;
#[cfg(feature = "lock-etcd")]
mod lock_etcd;
mod lock_s3;
mod lost;
mod output;
mod signals;
mod simulate;
mod support;
mod tls;
mod unreachable;
mod usage;
