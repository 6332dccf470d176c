//! The client for PD and TiKV against servers made for it: PD's quirks, stores
//! that hold their headers back, TLS.

#![cfg(all(feature = "tikv", feature = "sim"))]

mod certificates;
mod fake_pd;
mod fake_store;
mod grpcio;
mod listings;
mod members;
mod raw_h2;
mod reads;
mod scans;
mod streams;
mod support;
mod tls;
