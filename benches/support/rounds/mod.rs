//! A coordinator that works in rounds, to compare with: what a client that was
//! not made for a short standstill does. For the benchmarks only.
//!
//! It takes the same steps to a proof as this crate's machine, against the same
//! model with the same faults: the claims of all stores, a stream and a lease at
//! every store, waits, a leader read for every confirmed wait, a listing of all
//! claims with a renewal of all leases, the hold, `Finish`. What makes it slow is
//! how it goes on after a failure:
//!
//! - all waits of a round are sent at once, without a window;
//! - a region that fails (refused, unanswered, or different in the last listing)
//!   is asked again when the one retry timer goes off, 5 s, which every further
//!   failure sets anew;
//! - regions that nobody spoke for are looked for only when nothing is in flight
//!   and the timer is not set.
//!
//! In all else it is given the best: reads go out as waits are confirmed, it
//! looks at all stores' claims rather than at what PD last heard, its listing and
//! its renewals go on at the same time.
//!
//! It is not as safe as the machine: it trusts a stream until that ends, has no
//! second attempt, and does not look for new stores.

mod coordinator;
mod line;
mod proof;
mod run;
mod waiting;

pub(crate) use run::{Ran, run};
