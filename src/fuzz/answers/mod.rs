//! What servers answer, from raw bytes, through the client's decoding into a
//! machine.

mod deliver;
mod target;
mod wire;

pub use target::answers;
