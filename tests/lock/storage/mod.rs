//! Locks on storage.

mod conform;
mod contend;
mod foreign;
mod support;
