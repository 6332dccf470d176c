//! The program end to end: the real binary, real gRPC on loopback, real
//! processes and signals. Nothing here asserts how long something takes; the
//! limits only keep a broken program from hanging the tests.
#![cfg(feature = "cli")]

mod check;
mod demo;
mod hold;
mod lock;
mod lost;
mod output;
mod signals;
mod simulate;
mod support;
mod unreachable;
mod usage;
