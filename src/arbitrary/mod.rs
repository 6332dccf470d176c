//! `Arbitrary` for what goes into a machine, so that fuzz harnesses can make
//! events and configurations from bytes.
//!
//! Every type that goes into a [`Machine`](crate::machine::Machine) implements
//! it: [`Config`](crate::machine::Config) (only such as are valid),
//! [`Event`](crate::machine::Event) and all that is in one, and
//! [`Timestamp`](crate::time::Timestamp). Numbers and keys are mostly small, so
//! that events meet what the machine knows; an event counts only if it carries
//! the number of an effect, so a harness that wants to get far gives it that of
//! one that was handed out.
//!
//! # A harness of one's own
//! Its body is a plain function, which a fuzzer and a test can call:
//!
//! ```
//! use std::time::Duration;
//!
//! use arbitrary::Unstructured;
//! use snapshot_prepare::machine::{Config, Effect, Event, Machine};
//! use snapshot_prepare::time::Timestamp;
//!
//! fn harness(bytes: &[u8]) -> arbitrary::Result<()> {
//!     let mut bytes = Unstructured::new(bytes);
//!     let config: Config = bytes.arbitrary()?;
//!     let mut now: Timestamp = bytes.arbitrary()?;
//!     let mut machine = Machine::new(config, now).expect("only valid ones are made");
//!     while !bytes.is_empty() {
//!         let mut streams = Vec::new();
//!         while let Some(effect) = machine.poll_effect() {
//!             // Here is the place for a driver of one's own.
//!             if let Effect::OpenStream { stream, .. } = effect {
//!                 streams.push(stream);
//!             }
//!         }
//!         let event: Event = match streams.pop() {
//!             // Fits what was asked, so it gets further.
//!             Some(stream) => Event::StreamOpened { stream },
//!             None => bytes.arbitrary()?,
//!         };
//!         now = now + Duration::from_millis(bytes.arbitrary::<u16>()?.into());
//!         machine.handle_event(event, now);
//!         if let Err(broken) = machine.check_invariants() {
//!             panic!("{broken}");
//!         }
//!     }
//!     Ok(())
//! }
//!
//! // A target for `cargo fuzz` is no more than:
//! // libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(harness(bytes)));
//! for byte in 0..=255 {
//!     harness(&[byte; 300]).expect("zeros follow when the bytes end");
//! }
//! ```

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod config;
mod event;
mod range;
mod region;
mod time;

use arbitrary::{Result, Unstructured};

/// Returns a number that is mostly small.
fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.ratio(1, 32)? {
        u.arbitrary()
    } else {
        u.int_in_range(0..=31)
    }
}
