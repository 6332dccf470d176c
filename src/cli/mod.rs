//! The program `snapshot-prepare`.
//!
//! [`main`] is all of it that a program needs; what it does is written in its
//! `--help` and in the README.

mod app;
mod args;
mod check;
mod demo;
mod down;
mod exit;
mod hold;
mod lock;
mod oracle;
mod output;
mod process;
mod run;
mod seed;
mod serve;
mod simulate;
mod simulated;

pub use app::main;
#[cfg(feature = "arbitrary")]
pub(crate) use args::parse;
