//! The pure planner, seen from outside: commands in, events out. Nothing here knows a log or a process.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod failures;
mod laws;
mod orders;
mod progress;
mod questions;
mod random;
mod rules;
mod transcript;
