//! The processes that react to all plans: the events they derive from a log, identical for any host.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod conflicts;
mod globs;
mod hosts;
mod lists;
mod mcp;
mod mentions;
pub mod recorded;
mod snapshots;
mod statistics;
mod transcript;
