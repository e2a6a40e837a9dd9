//! Executors on a real log: who wins a task, what the planner takes in, what commands leave behind. The supervisor is
//! the real program, and nothing here waits by sleeping.

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
