//! Locks on storage.

mod conform;
mod contend;
mod doubt;
mod faults;
mod faulty;
mod foreign;
mod looking;
mod releasing;
mod repeating;
mod s3;
mod s3_server;
mod settling;
mod support;
