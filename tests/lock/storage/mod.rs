//! Locks on storage.

mod conform;
mod contend;
mod foreign;
mod s3;
mod support;
