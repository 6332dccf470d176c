//! Locks on storage.

mod conform;
mod contend;
mod faults;
mod faulty;
mod foreign;
mod looking;
mod releasing;
mod s3;
mod s3_server;
mod settling;
mod support;
