//! The messages and services of PD and TiKV that are used here: generated code
//! for the trimmed definitions in `proto/`.
//!
//! No part of the public interface: public only for the tests of this crate.
//! The files beside this one are written by `tests/proto_fresh.rs`, which also
//! fails when they are stale. Clients come with feature `tikv`, servers with
//! feature `sim`.

#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

#[rustfmt::skip]
pub mod backup;
#[rustfmt::skip]
pub mod errorpb;
#[rustfmt::skip]
pub mod kvrpcpb;
#[rustfmt::skip]
pub mod metapb;
#[rustfmt::skip]
pub mod pdpb;
#[rustfmt::skip]
pub mod tikvpb;
