//! Locks on storage.

mod conform;
mod contend;
mod faults;
mod foreign;
mod s3;
mod s3_server;
mod support;
