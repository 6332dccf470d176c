//! The state machine against its contract: rules R1 to R18 of the design, one
//! file a rule, from the outside only.

mod bench;
mod cluster;
mod watch;

mod r01_dial_first;
mod r02_lease_all;
mod r03_own_clock;
mod r04_doubt_is_sticky;
mod r05_rivals;
mod r06_only_what_was_asked;
mod r07_bounded;
mod r08_nothing_waits_for_ever;
mod r09_retry_by_range;
mod r10_what_errors_say;
mod r11_gaps;
mod r12_coverage;
mod r13_prove;
mod r14_verify;
mod r15_hold;
mod r16_release;
mod r17_stores;
mod r18_cheap_to_look_at;
mod reports;
mod stuck;
