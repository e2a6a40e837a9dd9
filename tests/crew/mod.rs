//! The processes that watch over all plans: what they make of a log, and that any host makes the same of it.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod conflicts;
mod globs;
mod hosts;
mod lists;
mod mentions;
mod recorded;
mod snapshots;
mod statistics;
mod transcript;
