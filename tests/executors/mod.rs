//! Executors on a real log: claims, the planner's input, leftovers of commands. The supervisor is
//! the real program, and nothing waits by sleeping.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod agents;
mod attachments;
mod claims;
mod commands;
mod extending;
mod prompts;
pub(crate) mod rig;
mod signals;
mod taking_in;
mod timing;
mod workers;
